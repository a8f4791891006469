// What `starling why` sees on this host: two looks at every process of a job, some time apart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hang/report.h"
#include "starling/top/watch.h"

namespace starling::hang {

/// One job, as far as it has been seen.
struct JobReport {
    uint64_t id = 0;
    std::string command;
    uint32_t size = 0;  ///< ranks on all hosts
    std::vector<Rank> ranks;
    std::vector<std::string> accounts;     ///< what the ranks told, as it lay there; in their order, empty if that is nothing
    std::vector<uint64_t> times;           ///< when each was looked at, of its host's clock, ns
    std::vector<std::string> other_hosts;  ///< where else it has ranks
    std::string stacks;                    ///< of all of them, as text
};

/// Looks at the jobs that `filter` means (top::matches); `launcher`: only those of this process, 0: of any; `all_users`:
/// not the own user's alone. Takes `interval` seconds.
std::vector<JobReport> look(const std::string& filter, int launcher, bool all_users, double interval);

/// Adds the stacks of the job's processes, which are on this host. Takes up to half a minute.
void add_stacks(JobReport& job);

}  // namespace starling::hang
