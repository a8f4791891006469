// The output of `starling top`: as lines of text, or as JSON.
#pragma once

#include <string>
#include <vector>

#include "starling/top/watch.h"

namespace starling::top {

enum class Order : uint8_t { rank, waiting, messages, bytes, cpu, memory };
inline constexpr const char* kOrderNames[] = {"rank", "waiting", "messages", "bytes", "cpu", "memory"};

struct Style {
    Order order = Order::rank;
    bool totals = false;  ///< true: show counts since the start instead of rates per second
    bool color = false;
    size_t width = 0;                    ///< width of a line in columns; 0: unlimited
    const RankView* selected = nullptr;  ///< rank whose line is marked; null: none
};

/// Sorts each job's ranks: by rank, or by another value in descending order.
void sort_ranks(std::vector<JobView>& jobs, const Style& style);

/// One line of the list, and the rank that it shows; null: a head, or an empty line.
struct ListLine {
    std::string text;
    const RankView* rank = nullptr;
};

/// Returns lines for all jobs: a head per job, then one line per rank. No line is longer than the style's width. The result refers to
/// `jobs`.
std::vector<ListLine> lines(const std::vector<JobView>& jobs, const Style& style);

/// Returns one JSON object on one line.
std::string json(const std::vector<JobView>& jobs, double interval);

/// Formats 1234567 as "1.23M": at most five characters.
std::string short_number(double value);

}  // namespace starling::top
