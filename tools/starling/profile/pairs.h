// Who talks to whom, both ways together: a connection serves both.
#pragma once

#include <cstdint>
#include <vector>

#include "run.h"

namespace starling::analysis {

struct Pair {
    uint32_t a = 0, b = 0;  ///< processes, a < b
    Amount all, on_connection;
    Amount in_memory = {};  ///< all as of Sent
};

/// The pairs that talked in a span, ordered by a, then b. What a process sends to itself is not among them.
std::vector<Pair> pairs_of(const Span& span);

/// Several lists, each ordered, added up; `weight` multiplies the second.
std::vector<Pair> sum_of(const std::vector<Pair>& one, const std::vector<Pair>& other, double weight = 1);

/// Over all spans.
std::vector<Pair> pairs_of(const Run& run);

/// Heaviest first, by messages; equal ones in the order of their processes.
void sort_by_messages(std::vector<Pair>& pairs);

/// 0 to 1: how much of the messages goes between the same pairs if both are scaled to the same sum. 1 if both are empty.
double likeness(const std::vector<Pair>& one, const std::vector<Pair>& other);

}  // namespace starling::analysis
