// Evaluates the wait reports of a job's processes: which process waits for which, and why a wait does not end.
#pragma once

#include <string>
#include <vector>

#include "hang/collectives.h"
#include "hang/report.h"

namespace starling::hang {

/// The conclusions on a job.
struct Verdict {
    /// Sentences, the worst first. They name processes that have ended or are stopped, deadlocks, members of a communicator in different
    /// collective operations, and the processes that keep others waiting in the end. Empty if nothing wrong is visible.
    std::vector<std::string> findings;
    /// Whether a wait will not end by itself: a deadlock, a wait for a process that has ended, or a process that is stopped or lost. False
    /// if all waits are for processes that compute or cannot be judged.
    bool stuck = false;
    /// Whether a process waits, directly or indirectly, for a process that has ended normally.
    bool ended_awaited = false;
};
/// Judges a job by the reports of its processes. `home` is the job whose ranks are named by their numbers alone. A pure function of its
/// arguments.
Verdict judge(const std::vector<RankReport>& ranks, uint64_t home);

/// Returns one sentence about one process, with messages that nearly match its waits. `collectives`: those of all processes; without it,
/// the members that are missing in a collective operation are not named.
std::string sentence(const RankReport& rank, uint64_t home, const CollectiveCalls* collectives = nullptr);

/// Processes in the same state, with one sentence about them.
struct RankGroup {
    std::vector<size_t> ranks;  ///< indices in the report
    std::string text;
};

/// Returns the processes grouped by equal sentences, in the order of each group's first process. Members of one collective operation that
/// wait for the same missing members are in one group, with the shortest and the longest wait.
std::vector<RankGroup> groups(const std::vector<RankReport>& ranks, uint64_t home);

/// Returns "rank 3" or "rank 3 of job 0123456789abcdef".
std::string name_of(const ProcessName& process, uint64_t home);
/// Returns "rank 3", "rank 0 and rank 1" or "ranks 1 to 63 and 70". At most eight runs of ranks are named.
std::string names_of(std::vector<ProcessName> processes, uint64_t home);
/// Returns "12.3 s" or "5:12 min".
std::string duration(double seconds);

}  // namespace starling::hang
