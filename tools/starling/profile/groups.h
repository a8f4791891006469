// Groups of consecutive occurrences of a phase with similar partners, which are planned together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"
#include "run.h"

namespace starling::analysis {

/// Minimum likeness() of an occurrence with a group that it joins.
inline constexpr double kAlike = 0.9;

/// Messages in one direction after which Starling opens a connection on demand (default of STARLING_DIRECT_THRESHOLD).
inline constexpr double kOnDemandAfter = 8;

struct Group {
    std::string name;
    uint64_t from = 1, to = 1;
    std::vector<Pair> pairs;    ///< traffic in all these occurrences; ordered as in pairs_of
    std::vector<Pair> worth;    ///< value of a connection for each pair, in messages; see add_worth()
    std::vector<size_t> spans;  ///< spans of the group, as ascending indices into Run::spans
    double occurrences() const { return static_cast<double>(to - from + 1); }
};

/// Returns the run's groups, in the order in which they began.
std::vector<Group> groups_of(const Run& run);

/// Sets Group::worth of all groups, with one entry per pair in the order of the pairs. The worth of a pair is the number of messages that a
/// connection would carry in the group's first occurrence, plus its value in later ones (plan/future_value.h).
void add_worth(const Run& run, std::vector<Group>& groups);

/// Returns whether a connection for the pair would carry more than it costs to open. Pairs for which Starling would never open one on
/// demand are not planned either.
inline bool is_worth_opening(const Pair& pair) { return pair.all.messages >= 2 * kOnDemandAfter; }

}  // namespace starling::analysis
