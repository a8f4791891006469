#include "features.h"

#include <algorithm>

namespace starling::simulation {

const char* name_of(Feature feature) {
    static constexpr const char* kNames[kFeatures] = {"windows",    "symmetric", "multicast", "plans", "devices", "persistent",
                                                      "encryption", "deaths",    "spawn",     "ports", "threads", "turns",
                                                      "survival",   "replace",   "keep",      "files", "leaving"};
    return kNames[static_cast<int>(feature)];
}

bool Features::read(std::string_view text, Features& into) {
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find('+', at), text.size());
        int feature = 0;
        while (feature < kFeatures && text.substr(at, end - at) != name_of(static_cast<Feature>(feature))) ++feature;
        if (feature == kFeatures) return false;
        into.add(static_cast<Feature>(feature));
        at = end + 1;
    }
    return true;
}

Features& done() {
    static Features features;
    return features;
}

}  // namespace starling::simulation
