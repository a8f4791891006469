// What the processes of a job say of themselves, put together: who waits for whom, and why that does not end.
#pragma once

#include <string>
#include <vector>

#include "hang/report.h"

namespace starling::hang {

/// What all of it comes to, the worst first: processes that are gone or stopped, cycles, members of a communicator that are in
/// different collective operations, whom the others wait for in the end. Empty: nothing is wrong that can be seen. `home`:
/// the job whose ranks are named by their numbers alone. A function of its arguments.
std::vector<std::string> findings(const std::vector<Rank>& ranks, uint64_t home);

/// Whether somebody waits, in the end, for a process that has ended well.
bool is_ended_awaited(const std::vector<Rank>& ranks);

/// One sentence about one process, with what nearly matches what it waits for.
std::string sentence(const Rank& rank, uint64_t home);

/// "rank 3", "rank 3 of job 0123456789abcdef".
std::string name_of(const Process& process, uint64_t home);
/// "12.3 s", "5:12 min".
std::string duration(double seconds);

}  // namespace starling::hang
