// Inspects every process of a job on this host twice, some time apart, for `starling why`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hang/report.h"
#include "starling/top/watch.h"

namespace starling::hang {

/// One job, as the two inspections show it.
struct JobReport {
    uint64_t id = 0;
    std::string command;
    uint32_t size = 0;  ///< number of ranks on all hosts
    std::vector<RankReport> ranks;
    std::vector<std::string> accounts;     ///< raw wait reports, in the order of `ranks`; empty if there is none
    std::vector<uint64_t> times;           ///< time of each rank's inspection by its host's clock, ns
    std::vector<std::string> other_hosts;  ///< other hosts with ranks of the job
    std::string stacks;                    ///< stacks of all ranks, as text
};

/// Inspects the jobs that match `filter` (top::matches). `launcher`: only jobs of this process, 0: of any; `all_users`: include jobs of
/// other users. Takes `interval` seconds.
std::vector<JobReport> look(const std::string& filter, int launcher, bool all_users, double interval);

/// Adds the stacks of the job's processes on this host. `all_frames`: do not hide frames and threads of the library. Takes 40 s at most, and
/// prints the progress to standard error if it takes longer than 2 s.
void add_stacks(JobReport& job, bool all_frames);

}  // namespace starling::hang
