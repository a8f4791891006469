// Handles ranks that exit with 0 without calling MPI_Init, in jobs on several hosts: checks from the root whether other ranks wait for them.
// Jobs on one host are handled by process/exit_without_init.cpp.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "launch/process/ended_look.h"
#include "launch/universe/universe_job.h"

namespace starling::launch {

std::vector<std::string> Universe::other_hosts(const UniverseJob& job) const {
    std::vector<std::string> names;
    for (const uint32_t host : job.tree_hosts)
        if (host != kRootHost) names.push_back(hosts_[host].name);
    return names;
}

void Universe::on_absent(UniverseJob& job, uint32_t host, const HostOrder& order) {
    if (std::exchange(job.absent_noted, true)) return;
    // Each check asks all hosts, and few such jobs hang, so the interval grows to minutes.
    start_wait_checks(loop_, launcher_,
                      {.job = job.id(),
                       .longest = std::chrono::minutes(5),
                       .state =
                           [this, alive = alive_, id = job.id()] {
                               const UniverseJob* found = *alive ? find(id) : nullptr;
                               return found && !found->failing ? NextCheck::now : NextCheck::never;
                           },
                       .hosts = [this, id = job.id()] { return other_hosts(*find(id)); },
                       .found = [this, host, absent = order] { fail_for_absent(host, absent); }});
}

void Universe::fail_for_absent(uint32_t host, const HostOrder& absent) {
    const FailureReport report{absent.rank, 0, 1, false, absent.text + ", but others wait for it"};
    on_failed(*find(absent.job), host,
              {.kind = OrderKind::failed, .job = absent.job, .rank = absent.rank, .bytes = encode(report)});
}

}  // namespace starling::launch
