// How `starling top` shows what it has seen: as lines for a person, or as JSON.
#pragma once

#include <string>
#include <vector>

#include "starling/top/watch.h"

namespace starling::top {

enum class Order : uint8_t { rank, waiting, messages, bytes };
inline constexpr const char* kOrderNames[] = {"rank", "waiting", "messages", "bytes"};

struct Style {
    Order order = Order::rank;
    bool totals = false;  ///< numbers since the start instead of per second
    bool color = false;
    size_t width = 0;  ///< columns; 0: as wide as it gets
};

/// Sorts each job's ranks: by rank, or the greatest first.
void sort_ranks(std::vector<JobView>& jobs, const Style& style);

/// Lines for all jobs, one per rank, under a head per job; no line is longer than the style's width.
std::vector<std::string> lines(const std::vector<JobView>& jobs, const Style& style);

/// One JSON object, on one line.
std::string json(const std::vector<JobView>& jobs, double interval);

/// 1234567 as "1.23M": at most five characters.
std::string short_number(double value);

}  // namespace starling::top
