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

/// Whom messages were sent to.
struct Sent {
    Partner to;         ///< by their number
    uint32_t late = 0;  ///< of those to a peer that the plan names, how many went before its connection was there
};

/// By falling priority.
using Partners = std::vector<Partner>;

}  // namespace starling::plan
