// Evaluates the wait reports of a job's processes: which process waits for which, and why a wait does not end.
#pragma once

#include <string>
#include <vector>

#include "hang/report.h"

namespace starling::hang {

/// Returns the conclusions, the worst first. They name processes that have ended or are stopped, deadlocks, members of a communicator in
/// different collective operations, and the processes that keep others waiting in the end. Empty if nothing wrong is visible. `home` is the
/// job whose ranks are named by their numbers alone. A pure function of its arguments.
std::vector<std::string> findings(const std::vector<RankReport>& ranks, uint64_t home);

/// Returns whether a process waits, directly or indirectly, for a process that has ended normally.
bool is_ended_awaited(const std::vector<RankReport>& ranks);

/// Returns one sentence about one process, with messages that nearly match its waits.
std::string sentence(const RankReport& rank, uint64_t home);

/// Returns "rank 3" or "rank 3 of job 0123456789abcdef".
std::string name_of(const ProcessName& process, uint64_t home);
/// Returns "12.3 s" or "5:12 min".
std::string duration(double seconds);

}  // namespace starling::hang
