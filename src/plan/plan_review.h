// Detects wrong plans: those that send fewer messages on connections than a run without a plan would. The latter number is estimated by a
// small model of connections on demand, whose input is the traffic that was sent.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/peer_traffic.h"

namespace starling::plan {

/// Thresholds at which the on-demand policy opens a connection, unless it is still open from the phase before.
struct DemandPolicy {
    uint32_t threshold = 0;  ///< messages sent to a peer before its connection is opened
    uint32_t cost = 0;       ///< messages both ways after which a connection replaces another (STARLING_REPLACE_MESSAGES)
    uint32_t limit = 0;      ///< maximum number of connections
};

/// A model of one transport's connections on demand. A peer's connection opens after its first messages. The peers with most traffic in a
/// phase keep their connections in the next phase.
class OnDemand {
  public:
    /// Simulates a phase with this traffic. Returns how many of its messages would have been sent on connections. Opening is assumed to
    /// take as long as it took with the plan.
    uint64_t phase(std::span<const PeerTraffic> traffic, const DemandPolicy& terms);

  private:
    using PhaseKey = std::pair<uint64_t, uint32_t>;
    std::vector<PhaseKey> open_;  ///< sorted
};

class PlanReview {
  public:
    /// Evaluates a phase that had a plan. Returns true if the plan should be dropped, because it was worse than no plan in three phases in
    /// a row. Phases with few messages do not count.
    bool phase(uint64_t messages, uint64_t on_connections, uint64_t on_demand);

    static constexpr int kPhases = 3;
    static constexpr uint64_t kFewMessages = 64;
    static constexpr uint64_t kMargin = 50;  ///< a plan counts as worse only if it loses more than 1/50 of the messages

  private:
    int worse_ = 0;
};

}  // namespace starling::plan
