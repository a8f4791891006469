// The processes with which a phase of the program exchanges messages.
#pragma once

#include <cstdint>
#include <vector>

namespace starling::plan {

struct Partner {
    uint64_t job = 0;
    uint32_t rank = 0;
    uint32_t priority = 0;  ///< number of messages exchanged in the phase, at least 1
    bool operator==(const Partner&) const = default;
};

/// The messages that a phase has exchanged with one partner.
struct PeerTraffic {
    Partner with;       ///< the partner; its priority is the number of messages both ways
    uint32_t sent = 0;  ///< number of messages sent to the partner
    uint32_t late = 0;  ///< number of messages sent before the planned connection was open
};

/// The partners of a phase, by falling priority.
using Partners = std::vector<Partner>;

}  // namespace starling::plan
