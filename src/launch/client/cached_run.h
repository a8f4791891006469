// What mpiexec keeps of a run for the next one (STARLING_PLAN=auto): a plan file (docs/plan.md) with the ranks' hosts in addition.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/client/traffic_record.h"
#include "launch/common/plan.h"

namespace starling::launch {

struct CachedRun {
    Plan plan;
    std::string key;                     ///< application, arguments, size and hosts of the run (run_key())
    std::string command;                 ///< the exact command line
    std::vector<std::string> hosts;      ///< hosts of the run
    std::vector<uint32_t> host_of_rank;  ///< index in `hosts` where each rank should run; empty: in order
    double in_order_seconds = 0;         ///< duration of the last run with ranks in order; 0: none
    double placed_seconds = 0;           ///< duration of the last run with this placement; 0: none

    /// Returns whether the placement made the same command slower.
    bool is_slower() const { return in_order_seconds > 0 && placed_seconds > 1.02 * in_order_seconds; }
    /// Returns whether the placement should be used. It is not if it made the same command slower, nor in the run that measures a new command
    /// in order for comparison.
    bool is_placed() const {
        const bool is_compared = placed_seconds <= 0 || in_order_seconds > 0;
        return !host_of_rank.empty() && is_compared && !is_slower();
    }
};

/// Parses the text of a file in the cache. Returns an empty string, or a sentence with the error; `out` is unspecified then.
std::string parse_cached_run(std::string_view text, CachedRun& out);
std::string to_text(const CachedRun& run);

/// Makes the plan for the next run from a complete record. `last`: what was known before this run; `placed`: whether this run used its
/// placement.
CachedRun next_run(const TrafficRecord& record, CachedRun last, bool placed);

}  // namespace starling::launch
