#include "plan/connection_choice.h"

namespace starling::plan {

std::vector<size_t> choose_requests(std::span<const ConnectionAvailability> wanted, ConnectionSlots places) {
    std::vector<size_t> ask;
    uint32_t served = 0;
    for (size_t i = 0; i < wanted.size() && served < places.limit; ++i) {
        if (wanted[i] == ConnectionAvailability::barred) continue;
        ++served;
        if (wanted[i] == ConnectionAvailability::held) continue;
        if (places.free > 0)
            --places.free;
        else if (places.leaving > 0) {
            --places.leaving;
            continue;
        }
        ask.push_back(i);
    }
    return ask;
}

}  // namespace starling::plan
