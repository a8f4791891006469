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
    /// With the heaviest pairs of each occurrence that are worth it open when it begins; what is left of earlier ones stays where
    /// there is room, and what earns a connection gets it there.
    std::vector<double> planned;
    std::vector<double> chosen;     ///< these heaviest pairs alone
    std::vector<double> on_demand;  ///< the same, but the heaviest pairs have to earn theirs, too
    std::vector<double> fixed;      ///< the first partners of each process, for good: the static choice
    double recorded = 0;            ///< what it was in the run itself
    /// The smallest number with which the heaviest pairs carry at least 95 % of what they do with the most.
    uint32_t knee() const;
};

/// The heaviest pairs such that no process has more than `most`: taken by messages, both sides' limits respected.
/// `by_weight` is sorted by sort_by_messages.
std::vector<Pair> choose(const std::vector<Pair>& by_weight, uint32_t most, uint32_t processes);

WhatIf what_if(const Run& run);

}  // namespace starling::analysis
