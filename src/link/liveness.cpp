#include "link/manager.h"

namespace starling::link {

// A job that ended normally may have sent last words: everything in our memory is delivered before
// the job is reported, and a dead sender's half-written cell must not hide what lies behind it.
void check_liveness() {
    while (recover_inbox()) poll();
    for (size_t i = 0; Job* job = job_at(i); ++i) {
        if (job->dead() || !job->mapped() || job == self().job) continue;
        if (boot::job_alive(job->segment())) continue;
        while (poll()) {
        }
        job->mark_dead();
        job->each_peer([](Peer& peer) { on_peer_dead(peer); });
        upcalls.job_failed(*job);
    }
}

}  // namespace starling::link
