#include "link/failure_detector.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "link/job_reclaim.h"
#include "link/manager.h"
#include "link/remote_peer.h"
#include "link/retry.h"
#include "link/transports.h"

namespace starling::link {

namespace {

/// How long a peer on another host may owe an acknowledgement before the daemon is asked about it.
constexpr uint64_t kPatienceNs = 300'000'000;

/// Maximum number of jobs checked per call of deaths_are_news(), which waits call often. A process may know hundreds of jobs;
/// check_liveness() checks all of them periodically.
constexpr size_t kJobsPerLook = 64;

/// Returns whether the rank is marked as failed in a job that continues after deaths. The mark stays when the job ends.
bool is_marked_failed(Job& job, uint32_t rank) {
    return job.segment().header().recovers && job::PortWord::of(job.segment().port(rank).load()).state == job::PortWord::failed;
}

// Delivers all data that ended processes have left in this process's memory, before they are reported as failed. A dead sender's
// half-written cell must not hide the packets after it. The work is bounded by what memory and sockets hold now (64 cells, and 128 lines
// per ring, 16 taken per poll), because other senders may never stop.
void drain() {
    for (int i = 0; i < 8; ++i) {
        recover();
        poll();
        poll_transports(transport::Transport::PollUrgency::now);
    }
}

// Reports the failed ranks of a job that continues without them. Ranks without a peer object get one: any later wait for such a rank must
// find it dead.
bool note_failed_ranks(Job& job) {
    const job::JobHeader& header = job.segment().header();
    if (!header.recovers || !job.count_failures(header.failures.load(std::memory_order_acquire))) return false;
    drain();
    for (uint32_t rank = 0; rank < header.size; ++rank) {
        if (!is_marked_failed(job, rank)) continue;
        Peer* peer = job.peer(rank);
        if (!peer || peer->dead) continue;
        fail(MPI_ERR_PROC_ABORTED, "rank %u has failed", rank);
        fail_peer(*peer);
    }
    return true;
}

void report_end(Job& job) {
    upcalls.job_failed(job);
    report_failures();
}

// Reports peers that have declared this process unreachable. The daemon passes this on in the rank's cell, because no packets of such peers
// arrive.
bool report_abandoning_peers() {
    job::RankCell& cell = self().job->segment().cell(self().rank);
    const uint32_t rank = cell.abandoned_by_rank.load(std::memory_order_acquire);
    if (rank == 0) return false;
    Job* job = job_with_id(cell.abandoned_by_job.load(std::memory_order_relaxed));
    cell.abandoned_by_rank.store(0, std::memory_order_release);
    if (!job || !job->mapped() || job->dead() || rank > job->segment().header().size) return false;
    drain();
    Peer* peer = job->peer(rank - 1);
    if (!peer || peer->dead || peer->supports(transport::kSharesMemory)) return false;
    fail(MPI_ERR_PROC_ABORTED,
         "rank %u on host %s has declared this process unreachable, since its packets are not acknowledged: let UDP datagrams "
         "through the firewalls of both hosts, or choose other networks with STARLING_IP_INTERFACES",
         peer->rank, host_name(*peer));
    fail_peer(*peer);
    return true;
}

}  // namespace

bool has_ended(const Process& process) {
    Job& job = *process.job;
    if (job.dead()) return true;
    if (const Peer* peer = job.find_peer(process.rank); peer && peer->dead) return true;
    if (!job.mapped()) return false;
    if (&job != self().job && !job::job_alive(job.segment())) return true;
    return is_marked_failed(job, process.rank);
}

bool has_pid(const Process& process, pid_t pid) {
    Job& job = *process.job;
    if (const Peer* peer = job.find_peer(process.rank); peer && peer->dead) return false;
    return pid != 0 && pid_of(process) == pid;
}

bool shares_pids(const Process& process) {
    Job& job = *process.job;
    return knows_pids() && job.mapped() && job.segment().cell(process.rank).apart_pid.load(std::memory_order_relaxed) == 0;
}

pid_t pid_of(const Process& process) {
    return shares_pids(process) ? process.job->segment().cell(process.rank).pid.load(std::memory_order_acquire) : 0;
}

bool has_failed(const Process& process) {
    Job& job = *process.job;
    const Peer* peer = job.find_peer(process.rank);
    if (!job.dead()) return peer && peer->dead;
    // A job that was gone before it could be mapped has left nothing that says how it ended.
    if (!job.mapped() || job.segment().header().state.load(std::memory_order_acquire) != job::JobState::ended) return true;
    // A job that continues after deaths ends normally even if every rank has died: its end does not take back the failure of a rank.
    return (peer && peer->failed) || is_marked_failed(job, process.rank);
}

bool is_known_to_have_ended(const Process& process) {
    Job& job = *process.job;
    return job.dead() || (job.mapped() && is_marked_failed(job, process.rank));
}

bool has_finalized(const Process& process) {
    if (!process.job->mapped()) return false;
    job::JobSegment& segment = process.job->segment();
    if (segment.is_local(process.rank)) return segment.cell(process.rank).state.load() >= job::RankState::finalized;
    return job::PortWord::of(segment.port(process.rank).load(std::memory_order_acquire)).state >= job::PortWord::finalized;
}

bool has_finalized_for_good(const Process& process) {
    if (!has_finalized(process)) return false;
    job::JobSegment& segment = process.job->segment();
    return job::PortWord::of(segment.port(process.rank).load(std::memory_order_acquire)).is_final ||
           (segment.is_local(process.rank) && segment.cell(process.rank).state.load() > job::RankState::finalized);
}

bool has_left(const Process& process) {
    if (!has_finalized(process)) return false;
    return process.job->segment().is_local(process.rank) || has_finalized_for_good(process);
}

// This function must cost only a few loads, because waits call it before each sleep and between polls. A failure is written before the
// doorbell is rung. A ring while the owner is awake does not end a later sleep, so each sleep needs this check.
bool deaths_are_news() {
    if (wait_descriptor() >= 0 &&
        self().job->segment().cell(self().rank).abandoned_by_rank.load(std::memory_order_relaxed) != 0)
        return true;
    for (size_t i = 0; i < kJobsPerLook; ++i) {
        Job* const job = job_at(i);
        if (!job) break;
        if (job->end_is_news()) return true;
        if (job->dead() || !job->mapped()) continue;
        const job::JobHeader& header = job->segment().header();
        if (header.recovers && job->failures_are_new(header.failures.load(std::memory_order_acquire))) return true;
        if (job != self().job && header.state.load(std::memory_order_acquire) != job::JobState::running) return true;
    }
    return false;
}

bool check_liveness() {
    bool any = false;
    shared_memory().lending().release_idle(now_ns());
    if (wait_descriptor() >= 0) {
        self().job->segment().cell(self().rank).polls.fetch_add(1, std::memory_order_relaxed);
        any = report_abandoning_peers();
    }
    query_silent_peers(kPatienceNs);
    for (; recover(); any = true) poll();
    for (size_t i = 0; Job* job = job_at(i); ++i) {
        if (job->take_news_of_end()) {
            report_end(*job);
            any = true;
        }
        if (job->dead() || !job->mapped()) continue;
        // The end is read first: the failures before it are visible then, and each rank's own failure is reported before the job's end.
        const bool alive = job == self().job || job::job_alive(job->segment());
        any |= note_failed_ranks(*job);
        if (alive) continue;
        drain();
        job->mark_dead();
        job->each_peer([](Peer& peer) { on_peer_dead(peer); });
        report_end(*job);
        any = true;
    }
    retry_failed();
    forget_ended_jobs();
    return any;
}

}  // namespace starling::link
