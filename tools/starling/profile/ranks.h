// The table of ranks: the time that each process computed and waited, what it sent and received, and how late it was.
#pragma once

#include <algorithm>
#include <vector>

#include "run.h"

namespace starling::analysis {

struct RankRow {
    uint32_t process = 0;
    double compute =
        0;  ///< time in phases outside of waits, s; includes short waits, which are not counted, and time without a core
    double waited = 0;  ///< time in waits, s
    Waits waits;
    Amount sent, received;  ///< messages and accesses
    double late = 0;        ///< time that the process computed longer than the median of its job, summed over the phases, s
    double seconds() const { return compute + waited; }
};

/// A group of ranks that compute so much longer than the others of their job that these wait.
struct LateRanks {
    std::vector<uint32_t> processes;  ///< in order; empty: no rank is late
    double late = 0;                  ///< mean of RankRow::late over the group
    double waited = 0;                ///< time that the others waited for the group, all together
    double of_others = 0;             ///< time of the others, all together
    uint32_t others = 0;
    bool contains(uint32_t process) const { return std::binary_search(processes.begin(), processes.end(), process); }
};

struct RankTable {
    std::vector<RankRow> rows;       ///< one row per process, in order
    RankRow least, mean, most;       ///< of each column for itself; `process` and `waits` are unused
    LateRanks late;                  ///< the group for which the others waited longest
    double seconds = 0, waited = 0;  ///< sums over all processes
};

/// Computes the table. Both the text and the page use it.
RankTable rank_table(const Run& run);

/// Returns the `count` most interesting rows as indexes, sorted by rank: those of the late ranks, then those with the longest
/// compute times, then those with the shortest. Returns all rows if there are no more than `count`.
std::vector<size_t> notable_rows(const RankTable& table, size_t count);

/// Returns text such as "rank 3", "ranks 1 and 4" or "ranks 2, 5–7 and 9"; names four ranges at most.
std::string ranks_text(const Run& run, const std::vector<uint32_t>& processes);

}  // namespace starling::analysis
