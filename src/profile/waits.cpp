#include "profile/waits.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/state.h"

namespace starling::profile {

namespace {

STARLING_STATE uint64_t waited[kCauses] = {};
STARLING_STATE uint64_t nowhere[kCauses] = {};  ///< wait time not yet attributed to a place in the program, by cause, ns
STARLING_STATE uint64_t nowhere_in_all = 0;

struct WaitSiteKey {
    const void* site;
    const char* function;
    bool operator==(const WaitSiteKey&) const = default;
};
struct WaitSiteHash {
    size_t operator()(const WaitSiteKey& place) const {
        return reinterpret_cast<size_t>(place.site) * 31 + reinterpret_cast<size_t>(place.function);
    }
};
STARLING_STATE Lazy<std::unordered_map<WaitSiteKey, WaitSum, WaitSiteHash>> places;

}  // namespace

bool add_wait(Cause cause, uint64_t ns) {
    waited[static_cast<size_t>(cause)] += ns;
    nowhere[static_cast<size_t>(cause)] += ns;
    nowhere_in_all += ns;
    return nowhere_in_all >= kPlaceNs;
}

void place_waits(const void* site, const char* function) {
    WaitSum& sum = places.get().try_emplace({site, function}, WaitSum{site, function}).first->second;
    for (size_t cause = 0; cause < kCauses; ++cause) sum.ns[cause] += std::exchange(nowhere[cause], 0);
    nowhere_in_all = 0;
}

const uint64_t* waits() { return waited; }

void each_wait(void (*visit)(const WaitSum& sum, void* argument), void* argument) {
    for (const auto& [place, sum] : places.get()) visit(sum, argument);
}

void clear_waits() {
    std::fill_n(waited, kCauses, 0);
    if (!places.get().empty()) places.get().clear();
}

}  // namespace starling::profile
