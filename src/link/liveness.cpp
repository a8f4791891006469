#include "link/manager.h"
#include "link/remote.h"

namespace starling::link {

namespace {

/// How long a peer on another host may owe an acknowledgement before the daemon is asked after it.
constexpr uint64_t kPatienceNs = 300'000'000;

// A job that ended normally may have sent last words: everything in our memory is delivered before the job
// is reported, and a dead sender's half-written cell must not hide what lies behind it. No more than lies
// there now, 64 cells and 128 lines per ring, taken 16 at a poll: others may send without end.
void drain() {
    for (int i = 0; i < 8; ++i) {
        recover_inbox();
        poll();
    }
}

}  // namespace

bool check_liveness() {
    bool any = false;
    ask_after_silent_peers(kPatienceNs);
    for (; recover_inbox(); any = true) poll();
    for (size_t i = 0; Job* job = job_at(i); ++i) {
        if (job->dead() || !job->mapped() || job == self().job) continue;
        if (boot::job_alive(job->segment())) continue;
        drain();
        job->mark_dead();
        job->each_peer([](Peer& peer) {
            on_peer_dead(peer);
            drop_session(peer);
        });
        upcalls.job_failed(*job);
        any = true;
    }
    return any;
}

}  // namespace starling::link
