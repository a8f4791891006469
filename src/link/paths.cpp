// Sending and receiving packets over the paths of a peer.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/counters.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/address_lookup.h"
#include "link/manager.h"
#include "link/peer.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "transport/batch.h"

namespace starling::link {

STARLING_STATE MessageUpcalls upcalls{};

namespace {

constexpr int kBatch = 16;  ///< maximum number of packets taken from one ring before the next ring is polled

STARLING_STATE List<Peer, &Peer::pending_hook>* pending = nullptr;
STARLING_STATE NoDestroy<std::vector<Peer*>> rings_storage;  ///< peers that may write to a direct ring of this process
constinit auto& rings = rings_storage.value;
STARLING_STATE PacketHandler takers[packet::kKinds] = {};
using Watcher = void (*)();
STARLING_STATE Watcher failure_watcher = nullptr;

}  // namespace

Peer::Peer(Job& its_job, uint32_t its_rank)
    : job(its_job),
      rank(its_rank),
      shm_path(shared_memory(), {&its_job.segment(), its_rank}, this),
      traffic(profile::open_traffic(its_job.address().id, its_rank)) {}

Peer::~Peer() {
    if (base) base->by.detach(*base);
    pending_hook.unlink();
    profile::close_traffic(traffic);
    std::free(why_dead);
}

int start() {
    const Process& me = self();
    share_counters(shm::SegmentRegion(me.job->segment().region(me.rank)).counters());
    start_transports();
    pending = new List<Peer, &Peer::pending_hook>;
    for (const auto kind : {packet::PacketKind::open, packet::PacketKind::accept, packet::PacketKind::refuse})
        register_handler(kind, on_connection_packet);
    register_handler(packet::PacketKind::farewell, on_farewell);
    for (const packet::PacketKind kind : {packet::PacketKind::rail_lost, packet::PacketKind::wire_lost})
        register_handler(kind, [](Peer& peer, const Packet& packet) { peer.base->handle(packet); });
    return me.job->segment().header().several_hosts ? open_network() : MPI_SUCCESS;
}

void register_handler(packet::PacketKind kind, PacketHandler taker) { takers[static_cast<size_t>(kind)] = taker; }

void watch_failures(void (*watcher)()) { failure_watcher = watcher; }

void report_failures() {
    if (failure_watcher) failure_watcher();
}

bool accepts_packets(packet::PacketKind kind) { return takers[static_cast<size_t>(kind)] != nullptr; }

void watch_ring(Peer& peer) { rings.push_back(&peer); }

void unwatch_ring(Peer& peer) { std::erase(rings, &peer); }

/// Returns whether the packet only concerns connections. No message waits for a connection, so such a packet does not wake its receiver,
/// which reads it with the next message.
bool is_about_connections(packet::PacketKind kind) {
    return kind == packet::PacketKind::open || kind == packet::PacketKind::accept || kind == packet::PacketKind::refuse;
}

bool try_control(Peer& peer, const PendingControl& control) {
    PacketSlot slot;
    if (!reserve(peer, control.bytes, slot)) return false;
    slot.quiet = is_about_connections(control.kind);
    slot.header->kind = control.kind;
    std::memcpy(slot.payload, control.payload, control.bytes);
    commit(peer, slot, control.bytes);
    return true;
}

void send_control(Peer& peer, packet::PacketKind kind, const void* payload, uint32_t bytes) {
    if (peer.dead) return;
    PendingControl control{kind, bytes, {}};
    if (bytes) std::memcpy(control.payload, payload, bytes);
    if (peer.controls.empty() && try_control(peer, control)) return;
    peer.controls.push_back(control);
    mark_pending(peer);
}

void mark_pending(Peer& peer) {
    if (!peer.pending_hook.linked()) pending->push_back(&peer);
}

bool anything_pending() { return !pending->empty(); }

bool waits_for_local_room() {
    for (Peer* peer = pending->front(); peer; peer = pending->next(peer))
        if (!peer->base->by.wait_source()) return true;
    return false;
}

void each_pending(void (*visit)(Peer& peer)) {
    for (Peer* peer = pending->front(); peer; peer = pending->next(peer)) visit(*peer);
}

void dispatch_rare(Peer& peer, const Packet& packet) {
    const auto kind = static_cast<size_t>(packet.header.kind);
    if (kind < packet::kKinds && takers[kind]) takers[kind](peer, packet);
}

namespace {

bool flush_controls(Peer& peer) {
    while (!peer.controls.empty()) {
        if (!try_control(peer, peer.controls.front())) return false;
        peer.controls.pop_front();
    }
    return !peer.shm_path.close_pending || try_close(peer);
}

/// Sends the peer's pending packets, as far as there is room. Returns false if some remain. Tries the control packets again at the end,
/// because a message may queue one: the envelope of a cancelled send is followed by a query to the receiver.
bool flush(Peer& peer) { return flush_controls(peer) && upcalls.flush(peer) && flush_controls(peer); }

uint64_t packets_sent_unreliably() { return counters.messages_ring + counters.messages_inbox + counters.messages_udp; }

bool flush_pending() {
    bool any = false;
    const transport::Batch batch(network());
    for (Peer* peer = pending->front(); peer;) {
        Peer* next = pending->next(peer);
        const uint64_t before = packets_sent_unreliably();
        if (flush(*peer)) {
            peer->pending_hook.unlink();
            any = true;
        }
        any |= packets_sent_unreliably() != before;
        peer = next;
    }
    return any;
}

}  // namespace

bool poll_rings() {
    bool any = false;
    for (size_t i = 0; i < rings.size(); ++i) {
        Peer& peer = *rings[i];
        any |= peer.shm_path.poll_ring(kBatch, [&peer](const Packet& packet) { dispatch(peer, packet); });
    }
    return any;
}

bool poll_but_rings(bool busy) {
    using PollUrgency = transport::Transport::PollUrgency;
    bool any = poll_transports(busy ? PollUrgency::busy : PollUrgency::quiet);
    if (has_pending_queries()) [[unlikely]]
        any |= poll_answers();
    if (!pending->empty()) [[unlikely]]
        any |= flush_pending();
    return any;
}

bool has_rings() { return !rings.empty(); }

bool rings_hold_something() {
    for (const Peer* peer : rings)
        if (peer->shm_path.in.front()) return true;
    return false;
}

}  // namespace starling::link
