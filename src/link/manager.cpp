#include "link/manager.h"

#include <cstring>

#include "base/config.h"
#include "base/process.h"

namespace starling::link {

namespace {

struct Slots {
    uint64_t taken = 0;  ///< bit per ring slot of our region
    Peer* users[shm::kRingSlots] = {};
    /// Who may still write to a slot though its job has failed: the slot is not given to another before it is gone.
    pid_t last_writers[shm::kRingSlots] = {};
};
constinit Slots slots;

uint32_t slot_limit() {
    const auto limit = static_cast<uint32_t>(config().max_direct);
    return limit < shm::kRingSlots ? limit : shm::kRingSlots;
}

int free_slot() {
    for (uint32_t i = 0; i < slot_limit(); ++i)
        if (!(slots.taken >> i & 1)) return static_cast<int>(i);
    for (uint32_t i = 0; i < slot_limit(); ++i) {
        if (slots.last_writers[i] == 0 || !process_gone(slots.last_writers[i])) continue;
        slots.last_writers[i] = 0;
        slots.taken &= ~(uint64_t{1} << i);
        return static_cast<int>(i);
    }
    return -1;
}

void take_slot(Peer& peer) {
    const int slot = free_slot();
    peer.in_slot = static_cast<uint32_t>(slot);
    slots.taken |= uint64_t{1} << slot;
    slots.users[slot] = &peer;
    const Process& me = self();
    peer.in.reset(shm::Region(me.job->segment().region(me.rank)).ring(peer.in_slot));
    watch_ring(peer);
}

void give_slot(Peer& peer) {
    unwatch_ring(peer);
    peer.in = {};
    slots.users[peer.in_slot] = nullptr;
    ++counters.closed;
    const pid_t pid = peer.dead ? peer.job.segment().cell(peer.rank).pid.load() : 0;
    if (pid > 0 && !process_gone(pid))
        slots.last_writers[peer.in_slot] = pid;
    else
        slots.taken &= ~(uint64_t{1} << peer.in_slot);
}

uint64_t has_connection(State state) { return state == State::connected || state == State::quiescing; }

void apply(Peer& peer, Event event, uint32_t offered_slot) {
    const Step next = step(peer.state, event, free_slot() >= 0);
    counters.connections += has_connection(next.next) - has_connection(peer.state);
    peer.state = next.next;
    if (next.actions & kTakeSlot) take_slot(peer);
    if (next.actions & kUseOffer) {
        peer.out = shm::RingWriter(peer.region.ring(offered_slot));
        ++counters.opened;
    }
    if (next.actions & kSendOpen) send_control(peer, shm::Kind::open, &peer.in_slot, sizeof peer.in_slot);
    if (next.actions & kSendAccept)
        send_control(peer, shm::Kind::accept, &peer.in_slot, sizeof peer.in_slot);
    if (next.actions & kSendRefuse) {
        ++counters.refused;
        send_control(peer, shm::Kind::refuse, nullptr, 0);
    }
    if (next.actions & kSendClose) {
        peer.close_pending = true;
        if (!try_close(peer)) mark_pending(peer);
    }
    if (next.actions & kGiveSlot) give_slot(peer);
    if (next.actions & kDefer) {
        peer.open_deferred = true;
        peer.deferred_slot = offered_slot;
    }
    if (peer.state == State::closed && peer.open_deferred) {
        peer.open_deferred = false;
        apply(peer, Event::open, peer.deferred_slot);
    }
}

// The limit is reached: let go of the connection that has carried least since it was last looked at, if
// it is worth less than half of the one that asks.
void make_room_for(Peer& asking) {
    Peer* least = nullptr;
    for (uint32_t i = 0; i < slot_limit(); ++i) {
        Peer* user = slots.users[i];
        if (!user || user->state != State::connected) continue;
        user->value = user->value / 2 + user->sent_since_check;
        user->sent_since_check = 0;
        if (!least || user->value < least->value) least = user;
    }
    if (least && least->value < asking.value / 2) apply(*least, Event::want_close, 0);
}

}  // namespace

void consider_opening(Peer& peer) {
    const auto threshold = static_cast<uint32_t>(config().direct_threshold);
    if (peer.sent_since_check < threshold || (&peer.job == self().job && peer.rank == self().rank)) return;
    peer.value = peer.value / 2 + peer.sent_since_check;
    peer.sent_since_check = 0;
    if (peer.remote) return;
    if (slot_limit() == 0 || peer.dead || peer.close_pending) return;
    if (peer.backoff > 0) {
        --peer.backoff;
        return;
    }
    if (free_slot() < 0) {
        make_room_for(peer);
        return;
    }
    apply(peer, Event::want_open, 0);
}

void request_close(Peer& peer) {
    if (peer.state == State::connected) apply(peer, Event::want_close, 0);
}

void on_connection_packet(Peer& peer, const Packet& packet) {
    if (peer.remote) return;
    uint32_t slot = 0;
    if (packet.header.bytes >= sizeof slot) std::memcpy(&slot, packet.payload, sizeof slot);
    if (slot >= shm::kRingSlots) return;
    switch (packet.header.kind) {
        case shm::Kind::open: return apply(peer, Event::open, slot);
        case shm::Kind::accept: return apply(peer, Event::accept, slot);
        case shm::Kind::refuse: peer.backoff = 16; return apply(peer, Event::refuse, 0);
        default: return;  // not of this version
    }
}

void on_close_packet(Peer& peer) { apply(peer, Event::close, 0); }

bool try_close(Peer& peer) {
    if (!peer.controls.empty() || !peer.out.reserve(0)) return false;
    peer.out.header().kind = shm::Kind::close;
    peer.out.commit(0);
    boot::ring(peer.region.doorbell());
    peer.out = {};
    peer.close_pending = false;
    return true;
}

void on_peer_dead(Peer& peer) {
    peer.dead = true;
    peer.out = {};
    peer.close_pending = false;
    peer.open_deferred = false;
    apply(peer, Event::peer_dead, 0);
    peer.controls.clear();
}

}  // namespace starling::link
