#include "link/remote_peer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/address_lookup.h"
#include "link/failure_detector.h"
#include "link/manager.h"
#include "link/transports.h"
#include "transport/failure_detection.h"

namespace starling::link {

namespace {

/// Minimum interval between two requests to the daemon about one peer.
constexpr uint64_t kAskAgainNs = 500'000'000;
/// Silence after which MPI_Finalize asks the daemon about a peer, ns. It is short, because a silent peer has most likely ended.
constexpr uint64_t kFinalPatienceNs = 10'000'000;

STARLING_STATE NoDestroy<std::vector<Peer*>> remotes_storage;  ///< peers on other hosts not known to be dead
constinit auto& remotes = remotes_storage.value;

bool is_here(const Peer& peer) { return peer.job.segment().is_local(peer.rank); }

job::PortWord word_of(const Peer& peer) {
    return job::PortWord::of(peer.job.segment().port(peer.rank).load(std::memory_order_acquire));
}

}  // namespace

const char* host_name(const Peer& peer) {
    const job::JobSegment& segment = peer.job.segment();
    return segment.host(segment.host_of(peer.rank)).name;
}

void watch_liveness(Peer& peer) { remotes.push_back(&peer); }

void stop_asking_after(Peer& peer) { std::erase(remotes, &peer); }

void fail_peer(Peer& peer) {
    if (peer.dead) return;
    peer.failed = true;
    peer.why_dead = strndup(failure_text().data(), failure_text().size());
    on_peer_dead(peer);
    upcalls.peer_failed(peer);
    report_failures();
}

int why_dead(const Peer& peer, int rank) {
    if (peer.job.dead()) return fail(MPI_ERR_PROC_ABORTED, "the job of rank %d has ended", rank);
    if (peer.why_dead && *peer.why_dead) return fail(MPI_ERR_PROC_ABORTED, "%s", peer.why_dead);
    return fail(MPI_ERR_PROC_ABORTED, "rank %d has failed, or is unreachable", rank);
}

void on_located(Peer& peer, int error, uint32_t looks) {
    if (peer.dead) return;
    const job::PortWord word = word_of(peer);
    if (word.state == job::PortWord::failed || error == MPI_ERR_PROC_ABORTED) {
        const std::string why(failure_text());
        poll_transports(transport::Transport::PollUrgency::now);  // deliver first the data that the peer sent before it failed
        if (peer.dead) return;
        if (error)
            fail(error, "%s", why.c_str());
        else
            fail(MPI_ERR_PROC_ABORTED, "rank %u on host %s has failed", peer.rank, host_name(peer));
        return fail_peer(peer);
    }
    if (error) return;  // the daemon is asked again if the peer stays silent
    // The peer lives and may be computing. Or it has finalized, and may start MPI again as long as it runs.
    const bool has_polled = looks != 0 && peer.polls != 0 && looks != peer.polls;
    peer.polls = looks;
    if (transport::FailureDetection* const detection = peer.base->by.failure_detection())
        detection->confirm_alive(*peer.base, has_polled);
}

void query_silent_peers(uint64_t patience_ns) {
    const uint64_t now = now_ns();
    for (Peer* peer : remotes) {
        const uint64_t since = peer->base->by.failure_detection()->silent_since(*peer->base);
        if (since == 0 || now - since <= patience_ns || now - peer->queried_at < std::min(patience_ns, kAskAgainNs)) continue;
        peer->queried_at = now;
        locate(peer->job, peer->rank);
    }
}

bool has_finalized(const Peer& peer) { return peer.dead || has_finalized(Process{&peer.job, peer.rank}); }

bool has_finalized_for_good(const Peer& peer) { return peer.dead || has_finalized_for_good(Process{&peer.job, peer.rank}); }

bool all_acknowledged() {
    bool all = true;
    for (const Peer* peer : remotes) all = all && (peer->base->idle() || has_finalized(*peer));
    if (!all) query_silent_peers(kFinalPatienceNs);
    return all;
}

void notify_finalized() {
    for (Peer* peer : remotes)
        if (!has_finalized(*peer)) send_control(*peer, packet::PacketKind::farewell, nullptr, 0);
    flush_transports();
}

void on_farewell(Peer& peer, const Packet&) {
    if (is_here(peer)) return;
    job::learn(peer.job.segment().port(peer.rank), {.state = job::PortWord::finalized, .is_final = true});
}

}  // namespace starling::link
