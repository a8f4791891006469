// What share of the messages would go on connections if each process had so many of them: the question behind max_direct.
#pragma once

#include <cstdint>
#include <vector>

#include "pairs.h"
#include "run.h"

namespace starling::analysis {

inline constexpr uint32_t kMostDirect = 24;  ///< as many as STARLING_MAX_DIRECT can be

/// Shares of all messages, 0 to 1, by the number of connections a process may have, 0 to kMostDirect.
struct WhatIf {
    std::vector<double> planned;    ///< the heaviest pairs of each occurrence that are worth it, open when it begins
    std::vector<double> on_demand;  ///< the same pairs, each open only after its first messages
    std::vector<double> fixed;      ///< the first partners of each process, for good: the static choice
    double recorded = 0;            ///< what it was in the run itself
    /// The smallest number whose planned share is within 5 % of the best.
    uint32_t knee() const;
};

/// The heaviest pairs such that no process has more than `most`: taken by messages, both sides' limits respected.
/// `by_weight` is sorted by sort_by_messages.
std::vector<Pair> choose(const std::vector<Pair>& by_weight, uint32_t most, uint32_t processes);

WhatIf what_if(const Run& run);

}  // namespace starling::analysis
