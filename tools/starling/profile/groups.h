// Occurrences of a phase, one after the other, that have like partners: planned as one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"
#include "run.h"

namespace starling::analysis {

/// Occurrences whose partners are at least so alike are one group.
inline constexpr double kAlike = 0.9;

/// Messages of a pair, to one side, after which Starling opens a connection on demand (STARLING_DIRECT_THRESHOLD's default).
inline constexpr double kOnDemandAfter = 8;

struct Group {
    std::string name;
    uint64_t from = 1, to = 1;
    std::vector<Pair> pairs;    ///< what went between them in all these occurrences; ordered as in pairs_of
    std::vector<Pair> worth;    ///< see add_worth
    std::vector<size_t> spans;  ///< indices into the run's, rising
    double occurrences() const { return static_cast<double>(to - from + 1); }
};

/// In the order in which they began.
std::vector<Group> groups_of(const Run& run);

/// Sets Group::worth: what a connection would carry in the group's first occurrence, and what it is worth later (plan/future_value.h).
/// Ordered as the pairs are.
void add_worth(const Run& run, std::vector<Group>& groups);

/// Whether a connection would carry more than opening it costs: what demand would never open for is not planned either.
inline bool is_worth_opening(const Pair& pair) { return pair.all.messages >= 2 * kOnDemandAfter; }

}  // namespace starling::analysis
