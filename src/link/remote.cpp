#include "link/remote.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "link/locate.h"
#include "link/manager.h"
#include "link/wires.h"

namespace starling::link {

STARLING_STATE ip::Endpoint* network = nullptr;

namespace {

/// How often the daemon is asked about the same peer.
constexpr uint64_t kAskAgainNs = 500'000'000;
/// In MPI_Finalize, where a peer that is silent has most likely ended.
constexpr uint64_t kFinalPatienceNs = 10'000'000;
/// Polls that may pass without a look at the sockets: while shared memory brings packets, and while nothing comes at
/// all but what came last came by shared memory.
constexpr uint32_t kSkipBusy = 16, kSkipQuiet = 4;
/// And without a look at datagrams or connections while the others bring everything, as they have for so long, ns.
constexpr uint32_t kSkipOther = 8;
constexpr uint64_t kBusyNs = 1'000'000;

STARLING_STATE Immortal<std::vector<Peer*>> remotes_storage;  ///< with a session
constinit auto& remotes = remotes_storage.value;
STARLING_STATE Immortal<std::vector<Peer*>> unplaced_storage;  ///< of these, those whose port is not known
constinit auto& unplaced = unplaced_storage.value;

/// One of two ways that packets come by.
struct Bringer {
    uint64_t last = 0;    ///< ns, when it brought something
    uint32_t passed = 0;  ///< polls that left it out

    bool busy(uint64_t now) const { return now - last < kBusyNs; }
    bool due(uint64_t now, const Bringer& other, uint64_t deadline) {
        return busy(now) || !other.busy(now) || ++passed >= kSkipOther || deadline <= now;
    }
    bool looked(uint64_t now, bool any) {
        passed = 0;
        if (any) last = now;
        return any;
    }
};

job::PortWord word_of(const Peer& peer) {
    return job::PortWord::of(peer.job.segment().port(peer.rank).load(std::memory_order_acquire));
}

void deliver(void* user, const packet::Header& header, const std::byte* payload) {
    dispatch(*static_cast<Peer*>(user), {header, payload});
}

/// A process that we have not met sends us something. If its job has to be found first, the endpoint holds the datagram and
/// asks again at every poll; the daemon is not asked as often.
ip::Session* meet(job::JobId id, uint32_t rank, uint64_t key) {
    Job* job = job_with_id(id);
    if (!job || !job->mapped()) {
        STARLING_STATE static uint64_t asked = 0;
        if (const uint64_t now = now_ns(); now - asked > 1'000'000) {
            asked = now;
            resolve_later(id);
        }
        return nullptr;
    }
    if (job->dead() || rank >= job->segment().header().size || job->segment().is_local(rank)) return nullptr;
    Peer* peer = job->peer(rank);
    if (peer && peer->session && key != 0) network->set_key(*peer->session, key);
    return peer ? peer->session : nullptr;
}

void lose(void* user) {
    Peer& peer = *static_cast<Peer*>(user);
    const char* host = host_name(peer);
    switch (network->failure(*peer.session)) {
        case ip::Failure::deaf:
            fail(MPI_ERR_PROC_ABORTED,
                 "rank %u on host %s lives and waits, but nothing sent to its UDP port %u has been acknowledged for %d s: "
                 "let UDP datagrams through the firewalls of both hosts, or choose other networks with "
                 "STARLING_IP_INTERFACES",
                 peer.rank, host, peer.port, static_cast<int>(config().ip_timeout));
            break;
        case ip::Failure::successor:
            fail(MPI_ERR_PROC_ABORTED, "rank %u on host %s has ended: another process is in its place", peer.rank, host);
            break;
        default:
            fail(MPI_ERR_PROC_ABORTED,
                 "rank %u on host %s can't be reached any more: nothing has come from it for %d s (STARLING_IP_TIMEOUT)",
                 peer.rank, host, static_cast<int>(config().ip_timeout));
    }
    tell_given_up(peer.job, peer.rank);
    fail_peer(peer);
}

constexpr ip::Upcalls kUpcalls{deliver, meet, lose};

/// Tells the session where the peer is, if that is known (anew).
bool place(Peer& peer) {
    const job::JobSegment& segment = peer.job.segment();
    const job::HostEntry& host = segment.host(segment.host_of(peer.rank));
    const job::PortWord word = word_of(peer);
    // Who fills in a host's entry writes this last.
    const uint32_t addresses = __atomic_load_n(&host.addresses, __ATOMIC_ACQUIRE);
    if (word.port == 0 || addresses == 0) return false;
    if (peer.port == word.port) return true;
    peer.port = word.port;
    network->set_key(*peer.session, host.key);
    network->set_addresses(*peer.session, host.ipv4, std::min(addresses, job::HostEntry::kMost), word.port);
    return true;
}

bool place_peers() {
    return std::erase_if(unplaced, [](Peer* peer) { return !peer->session || place(*peer); }) > 0;
}

}  // namespace

const char* host_name(const Peer& peer) {
    const job::JobSegment& segment = peer.job.segment();
    return segment.host(segment.host_of(peer.rank)).name;
}

int open_network() {
    if (network) return MPI_SUCCESS;
    const Process& me = self();
    job::JobSegment& segment = me.job->segment();
    const ip::Identity identity{segment.header().id, me.rank, segment.header().key};
    ip::Endpoint* opened = nullptr;
    if (const int error = ip::Endpoint::open(identity, kUpcalls, opened)) return error;
    network = opened;
    segment.port(me.rank).store(job::PortWord{network->port(), job::PortWord::running}.word());
    return MPI_SUCCESS;
}

void publish_state(bool finalized) {
    if (!network) return;
    const Process& me = self();
    me.job->segment().port(me.rank).store(
        job::PortWord{network->port(), finalized ? job::PortWord::finalized : job::PortWord::running}.word());
}

int network_descriptor() { return network ? network->wait_fd() : -1; }

uint64_t network_deadline() { return network ? std::min(network->next_deadline(), wires_deadline()) : UINT64_MAX; }

int attach_session(Peer& peer) {
    if (const int error = open_network()) return error;
    peer.remote = true;
    if (peer.dead) return MPI_SUCCESS;
    peer.session = network->add(peer.job.address().id, peer.rank, 0, &peer);
    if (!peer.session)
        return fail(MPI_ERR_OTHER, "no memory for a session with rank %u on host %s", peer.rank, host_name(peer));
    try {
        remotes.push_back(&peer);
        if (place(peer)) return MPI_SUCCESS;
        unplaced.push_back(&peer);
        locate(peer.job, peer.rank);
    } catch (const std::bad_alloc&) {
        drop_session(peer);
        throw;
    }
    return MPI_SUCCESS;
}

void fail_peer(Peer& peer) {
    if (peer.dead) return;
    peer.why_dead = strndup(failure_text().data(), failure_text().size());
    on_peer_dead(peer);
    drop_session(peer);
    upcalls.peer_failed(peer);
}

int why_dead(const Peer& peer, int rank) {
    if (peer.job.dead()) return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended: its job is gone", rank);
    if (peer.why_dead && *peer.why_dead) return fail(MPI_ERR_PROC_ABORTED, "%s", peer.why_dead);
    return fail(MPI_ERR_PROC_ABORTED, "rank %d has failed, or can't be reached any more", rank);
}

void drop_session(Peer& peer) {
    if (!peer.session) return;
    network->close(*peer.session);
    peer.session = nullptr;
    std::erase(remotes, &peer);
    std::erase(unplaced, &peer);
}

void forget_sessions(const Job& job) {
    if (network) network->forget(job.address().id);
}

bool reserve_remote(Peer& peer, uint32_t bytes, Slot& slot) {
    if (!peer.session || bytes > kRemotePayload) return false;
    // Not before it can leave: a send that is complete must not lie here while the program computes or blocks elsewhere.
    if (peer.port == 0 && !network->reachable(*peer.session)) [[unlikely]]
        return false;
    slot.path = Slot::Path::session;
    return network->reserve(*peer.session, bytes, slot.payload, slot.header);
}

void commit_remote(Peer& peer, uint32_t bytes) {
    network->commit(*peer.session, bytes);
    const bool by_wire = goes_by_wire(peer);
    (by_wire ? counters.messages_tcp : counters.messages_udp) += 1;
    (by_wire ? counters.bytes_tcp : counters.bytes_udp) += bytes;
}

uint32_t remote_piece_limit(const Peer& peer) {
    return peer.session ? std::min(network->payload_limit(*peer.session), kRemotePayload) : kRemotePayload;
}

bool poll_remote(bool busy) {
    STARLING_STATE static uint32_t skipped = 0, skip_quiet = 1;
    if (++skipped < (busy ? kSkipBusy : skip_quiet)) return false;
    skipped = 0;
    const uint64_t now = now_ns();
    STARLING_STATE static Bringer wires, datagrams;
    bool any = false;
    if (wires.due(now, datagrams, wires_deadline())) any |= wires.looked(now, poll_wires(now));
    if (datagrams.due(now, wires, network->next_deadline())) any |= datagrams.looked(now, network->poll(now));
    if (any)
        skip_quiet = 1;
    else if (busy)
        skip_quiet = kSkipQuiet;
    if (anything_asked()) [[unlikely]]
        any |= poll_answers();
    if (!unplaced.empty()) [[unlikely]]
        any |= place_peers();
    return any;
}

bool poll_sockets() {
    if (!network) return false;
    const uint64_t now = now_ns();
    const bool by_wire = poll_wires(now);
    return network->poll(now) || by_wire;
}

void on_located(Peer& peer, int error, uint32_t looks) {
    if (!peer.session) return;
    const job::PortWord word = word_of(peer);
    if (word.state == job::PortWord::failed || error == MPI_ERR_PROC_ABORTED) {
        const std::string why(failure_text());
        poll_sockets();  // what it has sent before
        if (peer.dead) return;
        if (error)
            fail(error, "%s", why.c_str());
        else
            fail(MPI_ERR_PROC_ABORTED, "rank %u on host %s has failed", peer.rank, host_name(peer));
        return fail_peer(peer);
    }
    if (error) return;  // asked again, if it stays silent
    place(peer);
    // It lives, and computes perhaps; or it has finalized, and may come back as long as it runs.
    const bool has_looked = looks != 0 && peer.looks != 0 && looks != peer.looks;
    peer.looks = looks;
    if (network->stalled_since(*peer.session) != 0) network->vouch(*peer.session, has_looked);
}

void ask_after_silent_peers(uint64_t patience_ns) {
    if (!network) return;
    const uint64_t now = now_ns();
    for (Peer* peer : remotes) {
        const uint64_t since = network->stalled_since(*peer->session);
        const bool silent = since != 0 && now - since > patience_ns;
        if ((!silent && peer->port != 0) || now - peer->asked_at < std::min(patience_ns, kAskAgainNs)) continue;
        peer->asked_at = now;
        locate(peer->job, peer->rank);
    }
}

bool has_finalized(const Peer& peer) {
    if (peer.dead) return true;
    if (!peer.remote) return peer.job.segment().cell(peer.rank).state.load() >= job::RankState::finalized;
    return word_of(peer).state >= job::PortWord::finalized;
}

bool all_acknowledged() {
    if (!network) return true;
    bool all = true;
    for (Peer* peer : remotes) all = all && (network->idle(*peer->session) || has_finalized(*peer));
    if (!all) ask_after_silent_peers(kFinalPatienceNs);
    return all;
}

void say_farewell() {
    for (Peer* peer : remotes)
        if (!has_finalized(*peer)) send_control(*peer, packet::Kind::farewell, nullptr, 0);
    flush_network();
}

void on_farewell(Peer& peer) {
    if (!peer.remote) return;
    job::PortWord word = word_of(peer);
    if (word.state >= job::PortWord::finalized) return;
    word.state = job::PortWord::finalized;
    peer.job.segment().port(peer.rank).store(word.word());
}

void flush_network() {
    if (network) network->flush_acks();
}

}  // namespace starling::link
