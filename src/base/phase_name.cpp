#include "base/phase_name.h"

#include <algorithm>
#include <cstring>

namespace starling {

static_assert(offsetof(Counters, last_waited) + sizeof(Count) <= kPhaseNameOffset,
              "the page of counters has room for a phase's name");

void publish_phase_name(std::string_view name) {
    char text[kPhaseNameBytes] = "";
    std::memcpy(text, name.data(), std::min(name.size(), sizeof text - 1));
    std::memcpy(reinterpret_cast<char*>(&counters) + kPhaseNameOffset, text, sizeof text);
}

std::string_view phase_name_in(const Counters& page) {
    const char* text = reinterpret_cast<const char*>(&page) + kPhaseNameOffset;
    return {text, strnlen(text, kPhaseNameBytes)};
}

}  // namespace starling
