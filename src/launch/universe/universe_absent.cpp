// A rank that ends well and has not called MPI_Init, of a job on several hosts (of one on one host: process/absent_rank.cpp): whether others
// wait for it is seen from here.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "launch/process/ended_look.h"
#include "launch/universe/universe_job.h"

namespace starling::launch {

std::vector<std::string> Universe::other_hosts(const Job& job) const {
    std::vector<std::string> names;
    for (const uint32_t host : job.tree_hosts)
        if (host != kRootHost) names.push_back(hosts_[host].name);
    return names;
}

void Universe::on_absent(Job& job, uint32_t host, const Order& order) {
    if (std::exchange(job.absent_noted, true)) return;
    // A look goes to all hosts, and few such jobs hang.
    look_for_waiting(loop_, launcher_,
                     {.job = job.id(),
                      .longest = std::chrono::minutes(5),
                      .state =
                          [this, alive = alive_, id = job.id()] {
                              const Job* found = *alive ? find(id) : nullptr;
                              return found && !found->failing ? Look::now : Look::never;
                          },
                      .hosts = [this, id = job.id()] { return other_hosts(*find(id)); },
                      .found = [this, host, absent = order] { fail_for_absent(host, absent); }});
}

void Universe::fail_for_absent(uint32_t host, const Order& absent) {
    const FailureReport report{absent.rank, 0, 1, false, absent.text + ", but others wait for it"};
    on_failed(*find(absent.job), host,
              {.kind = OrderKind::failed, .job = absent.job, .rank = absent.rank, .bytes = encode(report)});
}

}  // namespace starling::launch
