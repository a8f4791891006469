// Wrong plans: whether fewer messages went on connections than would have without the plan. What would have been is estimated by
// a small model of connections on demand, fed with what was sent.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/peer_traffic.h"

namespace starling::plan {

/// On which a peer has a connection on demand, unless it still has it from the phase before.
struct Terms {
    uint32_t threshold = 0;  ///< messages to it before
    uint32_t cost = 0;       ///< messages both ways before, where another has to go for it (STARLING_REPLACE_MESSAGES)
    uint32_t limit = 0;      ///< places
};

/// Connections on demand, of one transport: a peer's connection is there after its first messages, and those that carry most
/// of a phase have the places.
class OnDemand {
  public:
    /// A phase is over that had this traffic: how many of the messages sent would have gone on connections.
    /// To open one takes as long as it took the plan.
    uint64_t phase(std::span<const Traffic> traffic, const Terms& terms);

  private:
    using Key = std::pair<uint64_t, uint32_t>;
    std::vector<Key> open_;  ///< sorted
};

class PlanReview {
  public:
    /// A phase that had a plan is over. True: it is to be left, as it was worse than none in three phases in a row. Phases with
    /// few messages say nothing.
    bool phase(uint64_t messages, uint64_t on_connections, uint64_t on_demand);

    static constexpr int kPhases = 3;
    static constexpr uint64_t kFewMessages = 64;
    static constexpr uint64_t kMargin = 50;  ///< a fiftieth of the messages is no difference

  private:
    int worse_ = 0;
};

}  // namespace starling::plan
