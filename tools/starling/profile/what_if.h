// Computes the share of messages that would be sent on connections, depending on the number of connections per process. The result helps to
// choose max_direct.
#pragma once

#include <cstdint>
#include <vector>

#include "pairs.h"
#include "run.h"

namespace starling::analysis {

inline constexpr uint32_t kMostDirect = 24;  ///< maximum value of STARLING_MAX_DIRECT, the limit of connections per process

/// Shares of all messages, 0 to 1, indexed by the number of connections that a process may have, 0 to kMostDirect.
struct WhatIf {
    /// Curve of planned connections. In each occurrence, the heaviest pairs whose connections are worth opening have one from the start.
    /// Earlier connections stay if there is room, and other pairs get one on demand if there is room.
    std::vector<double> planned;
    std::vector<double> chosen;     ///< curve with only the connections of the heaviest pairs
    std::vector<double> on_demand;  ///< like `planned`, but connections of the heaviest pairs open on demand, too
    std::vector<double> fixed;      ///< curve of a static selection: the first partners of each process keep their connections
    double recorded = 0;            ///< share of the messages on connections in the run itself
    /// Returns the smallest number of connections with which the heaviest pairs carry at least 95 % of the messages that they carry with
    /// kMostDirect.
    uint32_t knee() const;
};

/// Selects the heaviest pairs such that no process has more than `most` of them, and returns them. `by_weight` must be sorted by
/// sort_by_messages().
std::vector<Pair> choose(const std::vector<Pair>& by_weight, uint32_t most, uint32_t processes);

WhatIf what_if(const Run& run);

}  // namespace starling::analysis
