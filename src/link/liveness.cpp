#include "base/error.h"
#include "link/manager.h"
#include "link/remote.h"

namespace starling::link {

namespace {

/// How long a peer on another host may owe an acknowledgement before the daemon is asked after it.
constexpr uint64_t kPatienceNs = 300'000'000;

// A job that ended normally may have sent last words: everything in our memory is delivered before the job
// is reported, and a dead sender's half-written cell must not hide what lies behind it. No more than lies
// there and in the sockets now, 64 cells and 128 lines per ring, taken 16 at a poll: others may send without end.
void drain() {
    for (int i = 0; i < 8; ++i) {
        recover_inbox();
        poll();
        poll_sockets();
    }
}

// Of a job that goes on without those of its ranks that have failed. They get peer objects even if they were never
// met: whoever waits for one must find it dead.
bool note_failed_ranks(Job& job) {
    const boot::JobHeader& header = job.segment().header();
    if (!header.recovers || !job.count_failures(header.failures.load(std::memory_order_acquire))) return false;
    drain();
    for (uint32_t rank = 0; rank < header.size; ++rank) {
        if (boot::PortWord::of(job.segment().port(rank).load()).state != boot::PortWord::failed) continue;
        Peer* peer = job.peer(rank);
        if (!peer || peer->dead) continue;
        fail(MPI_ERR_PROC_ABORTED, "rank %u has failed", rank);
        fail_peer(*peer);
    }
    return true;
}

}  // namespace

bool check_liveness() {
    bool any = false;
    ask_after_silent_peers(kPatienceNs);
    for (; recover_inbox(); any = true) poll();
    for (size_t i = 0; Job* job = job_at(i); ++i) {
        if (job->dead() || !job->mapped()) continue;
        any |= note_failed_ranks(*job);
        if (job == self().job) continue;
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
