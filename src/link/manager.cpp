#include "link/manager.h"

#include <algorithm>
#include <cstring>

#include "base/config.h"
#include "base/process.h"
#include "base/state.h"
#include "link/outbox.h"

namespace starling::link {

namespace {

struct Slots {
    uint64_t taken = 0;  ///< bit per ring slot of our region
    Peer* users[shm::kRingSlots] = {};
    /// Who may still write to a slot though its job has failed: the slot is not given to another before it is gone.
    pid_t last_writers[shm::kRingSlots] = {};
};
STARLING_STATE Slots slots;

/// A connection's worth: messages, and long ones by their length, lately more than long ago.
void note_value(Peer& peer) {
    peer.value = peer.value / 2 + peer.sent_since_check + static_cast<uint32_t>(peer.bytes_since_check / 16384);
    peer.sent_since_check = 0;
    peer.bytes_since_check = 0;
}

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

bool any_slot_free() { return free_slot() >= 0; }

void take_slot(Peer& peer) {
    const int slot = free_slot();
    peer.in_slot = static_cast<uint32_t>(slot);
    slots.taken |= uint64_t{1} << slot;
    slots.users[slot] = &peer;
    const Process& me = self();
    peer.in.reset(shm::Region(me.job->segment().region(me.rank)).ring(peer.in_slot), peer.region.outbox());
    watch_ring(peer);
}

uint32_t describe_slot(Peer& peer, packet::Kind, std::byte* payload) {
    std::memcpy(payload, &peer.in_slot, sizeof peer.in_slot);
    return sizeof peer.in_slot;
}

void use_slot(Peer& peer, packet::Kind, const std::byte* offer) {
    uint32_t slot = 0;
    std::memcpy(&slot, offer, sizeof slot);
    peer.out = shm::RingWriter(peer.region.ring(slot));
    apply(peer, Event::ready);
}

void send_close(Peer& peer) {
    peer.close_pending = true;
    if (!try_close(peer)) mark_pending(peer);
}

void give_slot(Peer& peer) {
    unwatch_ring(peer);
    peer.in.retire();
    peer.in = {};
    slots.users[peer.in_slot] = nullptr;
    const pid_t pid = peer.dead ? peer.job.segment().cell(peer.rank).pid.load() : 0;
    if (pid > 0 && !process_gone(pid))
        slots.last_writers[peer.in_slot] = pid;
    else
        slots.taken &= ~(uint64_t{1} << peer.in_slot);
}

void each_slot_user(void (*visit)(Peer& peer, void* argument), void* argument) {
    for (uint32_t i = 0; i < slot_limit(); ++i)
        if (slots.users[i]) visit(*slots.users[i], argument);
}

const Medium& medium(const Peer& peer) { return peer.remote ? kWires : kRings; }

uint64_t has_connection(State state) { return state == State::connected || state == State::quiescing; }

void send_offer(Peer& peer, packet::Kind kind) {
    std::byte payload[shm::kInlineBytes];
    const uint32_t bytes = medium(peer).describe_slot(peer, kind, payload);
    send_control(peer, kind, payload, bytes);
}

// The limit is reached: let go of the connection that has carried least since it was last looked at, if
// it is worth less than half of the one that asks.
void make_room_for(Peer& asking) {
    Peer* least = nullptr;
    const auto compare = [](Peer& user, void* argument) {
        Peer*& found = *static_cast<Peer**>(argument);
        if (user.state != State::connected) return;
        note_value(user);
        if (!found || user.value < found->value) found = &user;
    };
    medium(asking).each_user(compare, &least);
    if (least && least->value < asking.value / 2) apply(*least, Event::want_close);
}

}  // namespace

constexpr Medium kRings{any_slot_free, take_slot, describe_slot, use_slot, send_close, give_slot, each_slot_user};

void apply(Peer& peer, Event event, const std::byte* offer) {
    const Medium& by = medium(peer);
    const Step next = step(peer.state, event, by.slot_free());
    const uint64_t had = has_connection(peer.state), has = has_connection(next.next);
    counters.connections += has - had;
    counters.opened += has > had;
    counters.closed += has < had;
    peer.state = next.next;
    if (next.actions & kTakeSlot) by.take_slot(peer);
    if (next.actions & kUseOffer) by.use_offer(peer, event == Event::accept ? packet::Kind::accept : packet::Kind::open, offer);
    if (next.actions & kSendOpen) send_offer(peer, packet::Kind::open);
    if (next.actions & kSendAccept) send_offer(peer, packet::Kind::accept);
    if (next.actions & kSendRefuse) {
        ++counters.refused;
        send_control(peer, packet::Kind::refuse, nullptr, 0);
    }
    if (next.actions & kSendClose) by.send_close(peer);
    if (next.actions & kGiveSlot) by.give_slot(peer);
    if (next.actions & kDefer) {
        peer.open_deferred = true;
        std::memcpy(peer.deferred_offer, offer, sizeof peer.deferred_offer);
    }
    if (peer.state == State::closed && peer.open_deferred) {
        peer.open_deferred = false;
        std::byte deferred[sizeof peer.deferred_offer];
        std::memcpy(deferred, peer.deferred_offer, sizeof deferred);
        apply(peer, Event::open, deferred);
    }
}

void want_connection(Peer& peer) {
    if (peer.dead || peer.close_pending || peer.state != State::closed) return;
    if (peer.backoff > 0) {
        --peer.backoff;
        return;
    }
    if (medium(peer).slot_free())
        apply(peer, Event::want_open);
    else
        make_room_for(peer);
}

void consider_opening(Peer& peer) {
    if (peer.remote) {
        const auto messages = static_cast<uint32_t>(config().connect_messages);
        if (peer.sent_since_check < messages && peer.bytes_since_check < config().connect_bytes) return;
    } else {
        const auto threshold = static_cast<uint32_t>(config().direct_threshold);
        if (peer.sent_since_check < threshold || (&peer.job == self().job && peer.rank == self().rank)) return;
    }
    note_value(peer);
    want_connection(peer);
}

void request_connection(Peer& peer) {
    if (&peer.job == self().job && peer.rank == self().rank) return;
    peer.backoff = 0;
    want_connection(peer);
}

void request_close(Peer& peer) {
    if (peer.state == State::connected) apply(peer, Event::want_close);
}

void on_connection_packet(Peer& peer, const Packet& packet) {
    std::byte offer[shm::kInlineBytes] = {};
    std::memcpy(offer, packet.payload, std::min<size_t>(packet.header.bytes, sizeof offer));
    uint32_t slot = 0;
    std::memcpy(&slot, offer, sizeof slot);
    if (!peer.remote && slot >= shm::kRingSlots) return;
    switch (packet.header.kind) {
        case packet::Kind::open:
            return apply(peer, Event::open, offer);
        case packet::Kind::accept:
            return apply(peer, Event::accept, offer);
        case packet::Kind::refuse:
            peer.backoff = 16;
            return apply(peer, Event::refuse);
        default:
            return;  // not of this version
    }
}

void on_close_packet(Peer& peer) { apply(peer, Event::close); }

bool try_close(Peer& peer) {
    if (!peer.controls.empty() || !peer.out.reserve(0)) return false;
    peer.out.header().kind = packet::Kind::close;
    peer.out.commit(0);
    job::ring(peer.region.doorbell());
    peer.out = {};
    peer.close_pending = false;
    return true;
}

void on_peer_dead(Peer& peer) {
    peer.dead = true;
    if (!peer.remote) forget_in_outbox(peer);
    peer.out = {};
    peer.close_pending = false;
    peer.open_deferred = false;
    apply(peer, Event::peer_dead);
    peer.controls.clear();
}

}  // namespace starling::link
