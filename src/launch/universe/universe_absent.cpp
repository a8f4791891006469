// A rank that ends well and has not called MPI_Init, of a job on several hosts (of one on one host: process/absent_rank.cpp): whether others
// wait for it is seen from here.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "launch/process/explanation.h"
#include "launch/universe/universe_job.h"

namespace starling::launch {

namespace {
// A look goes to all hosts, and few such jobs hang.
constexpr std::chrono::milliseconds kFirstLook{1000}, kLastLook{300000};  // twice as long from one to the next
constexpr int kQuietSeconds = 1;
}  // namespace

std::vector<std::string> Universe::other_hosts(const Job& job) const {
    std::vector<std::string> names;
    for (const uint32_t host : job.tree_hosts)
        if (host != kRootHost) names.push_back(hosts_[host].name);
    return names;
}

void Universe::on_absent(Job& job, uint32_t host, const Order& order) {
    if (!std::exchange(job.absent_noted, true)) look_for_who_waits(host, order, kFirstLook);
}

void Universe::look_for_who_waits(uint32_t host, const Order& absent, std::chrono::milliseconds wait) {
    const auto is_to_be_looked_at = [this, alive = alive_, id = absent.job] {
        const Job* job = *alive ? find(id) : nullptr;
        return job && !job->failing;
    };
    loop_.after(wait, [this, host, absent, wait, is_to_be_looked_at] {
        if (!is_to_be_looked_at()) return;
        char name[20];
        std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(absent.job));
        const std::vector<std::string> others = other_hosts(*find(absent.job));
        explain(loop_, launcher_, name, kQuietSeconds, others,
                [this, host, absent, wait, is_to_be_looked_at](const std::string& text) {
                    if (!is_to_be_looked_at()) return;
                    if (text.find("which has ended") == std::string::npos)
                        return look_for_who_waits(host, absent, std::min(2 * wait, kLastLook));
                    const FailureReport report{absent.rank, 0, 1, false, absent.text + ", but others wait for it"};
                    on_failed(*find(absent.job), host,
                              {.kind = OrderKind::failed, .job = absent.job, .rank = absent.rank, .bytes = encode(report)});
                });
    });
}

}  // namespace starling::launch
