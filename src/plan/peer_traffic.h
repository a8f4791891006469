// With whom a phase of the program exchanges messages.
#pragma once

#include <cstdint>
#include <vector>

namespace starling::plan {

struct Partner {
    uint64_t job = 0;
    uint32_t rank = 0;
    uint32_t priority = 0;  ///< messages, at least 1
    bool operator==(const Partner&) const = default;
};

/// What a phase has exchanged with one of them.
struct Traffic {
    Partner with;       ///< by the messages both ways
    uint32_t sent = 0;  ///< of those
    uint32_t late = 0;  ///< of those sent to a peer that the plan names, how many went before its connection was there
};

/// By falling priority.
using Partners = std::vector<Partner>;

}  // namespace starling::plan
