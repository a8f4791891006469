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

/// By falling priority.
using Partners = std::vector<Partner>;

}  // namespace starling::plan
