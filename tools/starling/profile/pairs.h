// The traffic of pairs of processes, with both directions added up, since a connection serves both.
#pragma once

#include <cstdint>
#include <vector>

#include "run.h"

namespace starling::analysis {

struct Pair {
    uint32_t a = 0, b = 0;  ///< the two processes, a < b
    Amount all, on_connection;
    Amount in_memory = {};  ///< accesses to mapped memory (the three amounts: see Sent)
};

/// Returns the pairs that communicated in a span, ordered by a, then b. Messages of a process to itself are left out.
std::vector<Pair> pairs_of(const Span& span);

/// Returns the sum of two ordered lists. The amounts of the second are multiplied by `weight`.
std::vector<Pair> sum_of(const std::vector<Pair>& one, const std::vector<Pair>& other, double weight = 1);

/// Returns the pairs that communicated in the run, with their traffic summed over all spans.
std::vector<Pair> pairs_of(const Run& run);

/// Sorts by messages in descending order; equal pairs by their processes.
void sort_by_messages(std::vector<Pair>& pairs);

/// Returns how alike two lists are, 0 to 1: the share of messages between the same pairs after both lists are scaled to the same number of
/// messages. Returns 1 if both are empty.
double likeness(const std::vector<Pair>& one, const std::vector<Pair>& other);

}  // namespace starling::analysis
