#include "link/job_reclaim.h"

#include <algorithm>

#include "base/state.h"
#include "link/peer.h"
#include "link/transports.h"

namespace starling::link {

namespace {

constexpr size_t kFirstLook = 16;
STARLING_STATE size_t check_at = kFirstLook;  ///< number of jobs at which the next check is due
STARLING_STATE bool exposed = false;

ReclaimState standing_of(const Job& job) {
    return {.own = &job == self().job,
            .held = job.held(),
            .exposed = exposed,
            .mapped = job.mapped(),
            .dead = job.dead(),
            .owed = job.dead() && !job.held() && upcalls.owes(job)};
}

}  // namespace

void keep_mapped_jobs() { exposed = true; }

void forget_ended_jobs() {
    for (size_t i = 0; Job* job = job_at(i);) {
        if (!may_be_forgotten(standing_of(*job))) {
            ++i;
            continue;
        }
        job->each_peer([](Peer& peer) { upcalls.forget_peer(peer); });
        forget_in_transports(*job);
        forget_job(*job);
    }
}

void make_room_for_jobs() {
    if (job_count() < check_at) return;
    check_liveness();
    check_at = std::max(kFirstLook, 2 * job_count());
}

}  // namespace starling::link
