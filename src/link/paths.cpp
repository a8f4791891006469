// Sending and receiving packets over the paths of a peer.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "link/manager.h"
#include "link/outbox.h"
#include "link/peer.h"
#include "link/remote.h"
#include "link/wires.h"

namespace starling::link {

STARLING_STATE Upcalls upcalls{};

namespace {

constexpr int kBatch = 16;  ///< packets of one ring before the next is looked at

struct Paths {
    shm::InboxReader inbox;
    uint32_t pid;
    job::JobAddress address;
};
STARLING_STATE Paths* paths = nullptr;
STARLING_STATE List<Peer, &Peer::pending_hook>* pending = nullptr;
STARLING_STATE Immortal<std::vector<Peer*>> rings_storage;  ///< peers that may write to a ring of ours
constinit auto& rings = rings_storage.value;
STARLING_STATE Peer* last_sender = nullptr;  ///< whose packet came last by the inbox

}  // namespace

Peer::Peer(Job& its_job, uint32_t its_rank, shm::Region its_region) : job(its_job), rank(its_rank), region(its_region) {}

Peer::~Peer() {
    pending_hook.unlink();
    std::free(why_dead);
}

int start() {
    const Process& me = self();
    share_counters(shm::Region(me.job->segment().region(me.rank)).counters());
    paths = new Paths{shm::InboxReader(shm::Region(me.job->segment().region(me.rank)).inbox()), static_cast<uint32_t>(getpid()),
                      me.job->address()};
    pending = new List<Peer, &Peer::pending_hook>;
    start_outbox();
    return me.job->segment().header().several_hosts ? open_network() : MPI_SUCCESS;
}

void forget_sender(const Job& job) {
    if (last_sender && &last_sender->job == &job) last_sender = nullptr;
}

void watch_ring(Peer& peer) { rings.push_back(&peer); }

void unwatch_ring(Peer& peer) { std::erase(rings, &peer); }

bool reserve_on_base_path(Peer& peer, uint32_t bytes, Slot& slot) {
    if (peer.remote) return reserve_remote(peer, bytes, slot);
    std::byte* outside = nullptr;
    // No room: the ring was closed since payload_limit().
    if (bytes > shm::Cell::kPayload && !(outside = reserve_in_outbox(peer, bytes))) return false;
    slot.cell = shm::claim(peer.region.inbox(), paths->pid);
    if (!slot.cell) return false;
    slot.path = outside ? Slot::Path::inbox_outbox : Slot::Path::inbox;
    slot.cell->sender = {paths->address.id, paths->address.owner_pid, paths->address.owner_fd, self().rank, 0};
    slot.header = &slot.cell->header;
    slot.payload = outside ? outside : slot.cell->payload;
    return true;
}

bool reserve_long(Peer& peer, uint32_t bytes, Slot& slot) {
    if (bytes <= shm::kInlineBytes || !peer.out.has_line()) return false;
    slot.payload = reserve_in_outbox(peer, bytes);
    slot.path = slot.payload ? Slot::Path::ring_outbox : Slot::Path::ring;
    // Readers that don't look may hold all of the outbox. This one has some room of its own.
    if (!slot.payload) slot.payload = peer.out.reserve_bulk(bytes);
    slot.header = &peer.out.header();
    return slot.payload != nullptr;
}

namespace {

void commit_to_inbox(Slot& slot, uint32_t bytes) {
    slot.header->bytes = bytes;
    shm::publish(*slot.cell);
    ++counters.messages_inbox;
    counters.bytes_inbox += bytes;
}

}  // namespace

void commit_elsewhere(Peer& peer, Slot& slot, uint32_t bytes) {
    switch (slot.path) {
        case Slot::Path::session:
            return commit_remote(peer, bytes);
        case Slot::Path::ring_outbox:
            peer.out.commit(bytes, commit_in_outbox(peer, peer.out.receipt()));
            ++counters.messages_ring;
            counters.bytes_ring += bytes;
            break;
        case Slot::Path::inbox_outbox: {
            const shm::OutboxPlace place = commit_in_outbox(peer, shm::receipt(peer.region.inbox(), *slot.cell));
            std::memcpy(slot.cell->payload, &place, sizeof place);
            slot.header->where = packet::Where::outbox;
            commit_to_inbox(slot, bytes);
            break;
        }
        case Slot::Path::inbox:
            slot.header->where = packet::Where::here;
            commit_to_inbox(slot, bytes);
            break;
        case Slot::Path::ring:
            break;  // not here
    }
    job::ring(peer.region.doorbell());
}

bool try_control(Peer& peer, const Control& control) {
    Slot slot;
    if (!reserve(peer, control.bytes, slot)) return false;
    slot.header->kind = control.kind;
    std::memcpy(slot.payload, control.payload, control.bytes);
    commit(peer, slot, control.bytes);
    return true;
}

void send_control(Peer& peer, packet::Kind kind, const void* payload, uint32_t bytes) {
    if (peer.dead) return;
    Control control{kind, bytes, {}};
    if (bytes) std::memcpy(control.payload, payload, bytes);
    if (peer.controls.empty() && try_control(peer, control)) return;
    peer.controls.push_back(control);
    mark_pending(peer);
}

void mark_pending(Peer& peer) {
    if (!peer.pending_hook.linked()) pending->push_back(&peer);
}

bool anything_pending() { return !pending->empty(); }

bool anything_waits_for_room_here() {
    for (Peer* peer = pending->front(); peer; peer = pending->next(peer))
        if (!peer->remote) return true;
    return false;
}

void each_pending(void (*visit)(Peer& peer)) {
    for (Peer* peer = pending->front(); peer; peer = pending->next(peer)) visit(*peer);
}

void dispatch_rare(Peer& peer, const Packet& packet) {
    if (packet.header.kind == packet::Kind::spawn_control)
        upcalls.spawn_control(peer, packet);
    else if (packet.header.kind == packet::Kind::farewell)
        on_farewell(peer);
    else if (packet.header.kind == packet::Kind::rail_gone)
        on_rail_gone(peer, packet.payload, packet.header.bytes);
    else if (packet.header.kind != packet::Kind::access)
        on_connection_packet(peer, packet);
    else if (upcalls.access)
        upcalls.access(peer, packet);
}

namespace {

bool poll_ring(Peer& peer) {
    int taken = 0;
    while (taken < kBatch) {
        const packet::Header* header = peer.in.front();
        if (!header) break;
        if (header->kind == packet::Kind::close) {
            // It may have overtaken the accept that makes us connected.
            if (peer.state == State::connecting) break;
            on_close_packet(peer);
            return true;
        }
        dispatch(peer, {*header, peer.in.payload()});
        peer.in.pop();
        ++taken;
    }
    return taken > 0;
}

/// While the packet at the front of the inbox is from a job that can't be mapped just now: when to try again, ns.
STARLING_STATE uint64_t unmapped_until = 0;
constexpr uint64_t kMapAgainNs = 1'000'000;

/// For want of a descriptor or of address space, which may pass. Whoever waits for the packet should know why.
void note_unmapped() {
    STARLING_STATE static bool told = false;
    if (!told)
        std::fprintf(
            stderr,
            "starling: rank %u: %.*s. A message from it is left where it is, and all behind it wait, until that can be done\n",
            self().rank, static_cast<int>(failure_text().size()), failure_text().data());
    told = true;
    unmapped_until = now_ns() + kMapAgainNs;
    clear_failure();
}

/// Null if its job has gone: it can't be answered, so its packet is dropped. Null and `later`: its job can't be mapped now.
Peer* sender_of(const shm::Cell& cell, bool& later) {
    const shm::Sender& sender = cell.sender;
    if (last_sender && last_sender->rank == sender.rank && last_sender->job.address().id == sender.job) return last_sender;
    if (unmapped_until != 0 && now_ns() < unmapped_until) {
        later = true;
        return nullptr;
    }
    unmapped_until = 0;
    Job* const job = find_job(sender.address());
    Peer* const peer = job->peer(sender.rank);
    later = !job->mapped() && !job->dead();
    if (later) note_unmapped();
    if (peer) last_sender = peer;
    return peer;
}

bool poll_inbox() {
    bool any = false;
    for (int i = 0; i < kBatch; ++i) {
        shm::Cell* cell = paths->inbox.front();
        if (!cell) break;
        const bool outside = cell->header.where == packet::Where::outbox;
        bool later = false;
        Peer* peer =
            cell->header.bytes <= (outside ? shm::kOutboxPayload : shm::Cell::kPayload) ? sender_of(*cell, later) : nullptr;
        if (later) [[unlikely]]
            break;
        if (peer && !(outside && peer->remote))
            dispatch(*peer, {cell->header, outside ? shm::payload_in(peer->region.outbox(), cell->payload, cell->header.bytes)
                                                   : cell->payload});
        paths->inbox.pop();
        any = true;
    }
    return any;
}

bool flush_controls(Peer& peer) {
    while (!peer.controls.empty()) {
        if (!try_control(peer, peer.controls.front())) return false;
        peer.controls.pop_front();
    }
    return !peer.close_pending || try_close(peer);
}

uint64_t packets_sent() { return counters.messages_ring + counters.messages_inbox + counters.messages_udp; }

bool flush_pending() {
    bool any = false;
    const NetworkBatch batch;
    for (Peer* peer = pending->front(); peer;) {
        Peer* next = pending->next(peer);
        const uint64_t before = packets_sent();
        if (flush_controls(*peer) && upcalls.flush(*peer)) {
            peer->pending_hook.unlink();
            any = true;
        }
        any |= packets_sent() != before;
        peer = next;
    }
    return any;
}

}  // namespace

bool poll_rings() {
    bool any = false;
    for (size_t i = 0; i < rings.size(); ++i) any |= poll_ring(*rings[i]);
    return any;
}

bool poll_but_rings(bool busy) {
    bool any = poll_inbox();
    if (network) [[unlikely]]
        any |= poll_remote(busy || any);
    if (!pending->empty()) [[unlikely]]
        any |= flush_pending();
    return any;
}

bool rings_hold_something() {
    for (const Peer* peer : rings)
        if (peer->in.front()) return true;
    return false;
}

bool recover_inbox() { return paths->inbox.skip_dead(); }

}  // namespace starling::link
