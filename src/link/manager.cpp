#include "link/manager.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/config.h"
#include "base/counters.h"
#include "base/live.h"
#include "base/state.h"
#include "link/connection_quota.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "profile/record.h"

namespace starling::link {

namespace {

/// Number of occasions for a new request that are skipped after a refusal, or after a connection that could not be opened.
constexpr uint32_t kBackoff = 16;
constexpr uint64_t kBytesLikeOne = 16384;  ///< bytes of a streamed message that count as much as one short message

/// Number of packets, to any peer, after which the value of an unused connection has halved.
constexpr uint64_t kHalfLife = 128;
constexpr uint64_t kMostWorth = 4 * kHalfLife;
constexpr uint32_t kMostDear = 64;

STARLING_STATE bool replaces = true;
/// Factor on STARLING_REPLACE_MESSAGES for the replacement of a connection on demand; adapts to the traffic.
STARLING_STATE uint32_t dear = 1;
STARLING_STATE PlaceListener listener = nullptr;

void notify_plan(Peer& peer, PlaceNews news) {
    if (listener) listener(peer, news);
}

/// Returns how many packets this process has sent to all peers. This number is the clock by which connections' values decay.
uint64_t packets_sent() {
    return counters.messages_ring + counters.messages_inbox + counters.messages_udp + counters.messages_tcp +
           counters.messages_rc + counters.messages_verbs;
}

/// Returns the number of messages with the peer so far, in both directions, modulo 2^32.
uint32_t messages_with(const Peer& peer) { return peer.next_send + peer.next_receive; }

/// Updates a connection's value: the number of messages in both directions, because both ends use it, plus long messages by their length.
/// Recent messages count more than old ones.
void note_value(Peer& peer) {
    const uint64_t halves = (packets_sent() - peer.valued_at) / kHalfLife;
    peer.valued_at += halves * kHalfLife;
    const uint64_t before = halves < 32 ? peer.value >> halves : 0;
    const uint32_t now = messages_with(peer);
    peer.value = static_cast<uint32_t>(
        std::min(kMostWorth, before + (now - peer.messages_valued) + peer.bytes_since_check / kBytesLikeOne));
    peer.messages_valued = now;
    peer.sent_since_check = 0;
    peer.bytes_since_check = 0;
}

/// Returns the number of messages with the peer since the connection was last opened or closed, or the connection's value (note_value()) if
/// that is greater, as it may be after long messages.
uint32_t carried_since_change(const Peer& peer) { return std::max(messages_with(peer) - peer.messages_changed, peer.value); }

/// Adjusts `dear` when a connection is closed: doubles it if the connection has carried too little to be worth its opening, halves it if it
/// has carried much more.
void note_earnings(const Peer& closed) {
    const uint64_t carried = carried_since_change(closed), cost = static_cast<uint64_t>(live(config().replace_messages));
    if (carried < cost * dear)
        dear = std::min(dear * 2, kMostDear);
    else if (carried > 4 * cost * dear)
        dear = std::max(dear / 2, 1u);
}

/// Returns the transport's interface for connections to the peer; null if only the base path exists, as for this process itself.
transport::Connector* connector(const Peer& peer) {
    const bool own = &peer.job == self().job && peer.rank == self().rank;
    return own ? nullptr : peer.base->by.connector();
}

// Returns whether recent traffic justifies a connection. Called for more than half of all messages on the base path (kConsiderAfter), so it
// avoids a virtual call within a host.
bool has_earned(const Peer& peer) {
    if (peer.base == &peer.shm_path) return shared_memory().earned(peer.sent_since_check, peer.bytes_since_check);
    const transport::Connector* const by = connector(peer);
    return by && by->earned(peer.sent_since_check, peer.bytes_since_check);
}

PeerConnectionEvent event_of(packet::PacketKind kind) {
    if (kind == packet::PacketKind::refuse) return PeerConnectionEvent::refuse;
    return kind == packet::PacketKind::open ? PeerConnectionEvent::open : PeerConnectionEvent::accept;
}

uint64_t has_connection(ConnectionState state) {
    return state == ConnectionState::connected || state == ConnectionState::quiescing;
}

void send_offer(Peer& peer, packet::PacketKind kind) {
    std::byte payload[transport::Connector::kOffer];
    const uint32_t bytes = connector(peer)->describe(*peer.base, kind, payload);
    send_about_connection(peer, kind, payload, bytes);
}

/// Returns whether closing one connection for another is worth the cost: by the plan's priorities if either is planned, else by recent
/// traffic.
bool may_be_replaced(const Peer& user, const Peer& asking) {
    const auto cost = static_cast<uint64_t>(live(config().replace_messages));
    if (user.planned || asking.planned) return asking.planned >= user.planned + cost;
    return carried_since_change(asking) >= cost * dear && user.value < asking.value / 2;
}

// Makes room for the peer `asking` when the limit is reached. Finds the connection of lowest priority in the plan, or the least valuable
// among unplanned ones, and closes it if may_be_replaced().
void make_room_for(Peer& asking, transport::Connector& by) {
    if (!replaces) return;
    Peer* least = nullptr;
    const auto compare = [](void* one, void* argument) {
        Peer& user = *static_cast<Peer*>(one);
        Peer*& found = *static_cast<Peer**>(argument);
        if (user.state != ConnectionState::connected) return;
        note_value(user);
        if (!found || std::tie(user.planned, user.value) < std::tie(found->planned, found->value)) found = &user;
    };
    by.each_user(compare, &least);
    if (least && may_be_replaced(*least, asking)) apply(*least, PeerConnectionEvent::want_close);
}

/// The reason for a refusal, in the last byte of the space that other packets use for an offer.
enum class Refusal : uint8_t { not_said, no_place, failed };

void send_refusal(Peer& peer, Refusal why) {
    std::byte payload[transport::Connector::kOffer] = {};
    payload[sizeof payload - 1] = static_cast<std::byte>(why);
    send_about_connection(peer, packet::PacketKind::refuse, payload, sizeof payload);
}

void finish(Peer& peer, transport::Connector& by) {
    by.finish(*peer.base);
    if (peer.shm_path.close_pending && !try_close(peer)) mark_pending(peer);
}

}  // namespace

// The stamp follows the space for the longest offer: earlier releases, which have no stamps, do not read that far.
void send_about_connection(Peer& peer, packet::PacketKind kind, const void* offer, uint32_t bytes) {
    std::byte payload[transport::Connector::kOffer + sizeof(Stamp)] = {};
    if (bytes) std::memcpy(payload, offer, bytes);
    const Stamp stamp = peer.turns.stamp(event_of(kind));
    std::memcpy(payload + transport::Connector::kOffer, &stamp, sizeof stamp);
    send_control(peer, kind, payload, sizeof payload);
}

void apply(Peer& peer, PeerConnectionEvent event, const std::byte* offer) {
    transport::Connector* const by = connector(peer);
    // The peer has found a connection worthwhile, and this process has seen the same messages, so try to make room for it.
    if (event == PeerConnectionEvent::open && peer.state == ConnectionState::closed && by && !by->has_place()) {
        note_value(peer);
        make_room_for(peer, *by);
    }
    const ConnectionStep next = step(peer.state, event, by && by->has_place());
    const uint64_t had = has_connection(peer.state), has = has_connection(next.next);
    counters.connections += has - had;
    counters.opened += has > had;
    counters.closed += has < had;
    if (has < had) note_earnings(peer);
    if (has != had) peer.messages_changed = messages_with(peer);
    if (has != had && peer.traffic) [[unlikely]]
        profile::note_connection(*peer.traffic, has > had);
    peer.state = next.next;
    if (next.actions & kTakeSlot) {
        by->acquire_slot(*peer.base);
        if (peer.shm_path.in) watch_ring(peer);
    }
    if (next.actions & kUseOffer)
        by->use(*peer.base, event == PeerConnectionEvent::accept ? packet::PacketKind::accept : packet::PacketKind::open,
                offer);
    if (next.actions & kSendOpen) send_offer(peer, packet::PacketKind::open);
    if (next.actions & kSendAccept) send_offer(peer, packet::PacketKind::accept);
    if (next.actions & kSendRefuse) {
        ++counters.refused;
        send_refusal(peer, event == PeerConnectionEvent::open ? Refusal::no_place : Refusal::failed);
        if (event == PeerConnectionEvent::open) notify_plan(peer, PlaceNews::turned_away);
    }
    if (next.actions & kSendClose) finish(peer, *by);
    if (next.actions & kGiveSlot) {
        unwatch_ring(peer);
        by->release_slot(*peer.base);
        notify_plan(peer, PlaceNews::slot_released);
    }
    if (next.actions & kDefer) {
        peer.open_deferred = true;
        std::memcpy(peer.deferred_offer, offer, sizeof peer.deferred_offer);
    }
    if (peer.state == ConnectionState::closed && peer.open_deferred) {
        peer.open_deferred = false;
        std::byte deferred[sizeof peer.deferred_offer];
        std::memcpy(deferred, peer.deferred_offer, sizeof deferred);
        apply(peer, PeerConnectionEvent::open, deferred);
    }
}

void consider_connection(Peer& peer) {
    if (peer.dead || peer.shm_path.close_pending || peer.state != ConnectionState::closed) return;
    transport::Connector* const by = connector(peer);
    if (!by) return;
    if (peer.backoff > 0) {
        --peer.backoff;
        return;
    }
    if (!by->has_place()) make_room_for(peer, *by);
    if (by->has_place()) apply(peer, PeerConnectionEvent::want_open);
}

void listen_to_places(PlaceListener whom) { listener = whom; }

void keep_connections() { replaces = false; }

void consider_opening(Peer& peer) {
    if (!peer.gains || !has_earned(peer) || !connector(peer)) return;
    note_value(peer);
    consider_connection(peer);
    if (listener && peer.state == ConnectionState::closed && !connector(peer)->has_place()) listener(peer, PlaceNews::no_slot);
}

void count_short_access(Peer& peer) {
    if (!peer.supports(transport::kStreams) || peer.state != ConnectionState::closed || !connector(peer)->speeds_up(1, 8))
        return;
    ++peer.sent_since_check;
    consider_opening(peer);
}

void request_connection(Peer& peer) {
    peer.backoff = 0;
    consider_connection(peer);
}

void request_close(Peer& peer) {
    if (peer.state == ConnectionState::connected) apply(peer, PeerConnectionEvent::want_close);
}

void on_connection_packet(Peer& peer, const Packet& packet) {
    constexpr uint32_t kOffer = transport::Connector::kOffer;
    std::byte offer[kOffer] = {};
    std::memcpy(offer, packet.payload, std::min<size_t>(packet.header.bytes, sizeof offer));
    if (!connector(peer) || !connector(peer)->is_offer(offer)) return;
    const PeerConnectionEvent event = event_of(packet.header.kind);
    if (packet.header.bytes >= kOffer + sizeof(Stamp)) {
        Stamp stamp;
        std::memcpy(&stamp, packet.payload + kOffer, sizeof stamp);
        if (!peer.turns.concerns(peer.state, event, stamp)) return;
    }
    if (event == PeerConnectionEvent::refuse) {
        peer.backoff = kBackoff;
        if (offer[kOffer - 1] != static_cast<std::byte>(Refusal::no_place)) connector(peer)->failed_there(*peer.base);
    }
    apply(peer, event, event == PeerConnectionEvent::refuse ? nullptr : offer);
}

void on_news(Peer& peer, transport::ConnectionEvent news) {
    if (news == transport::ConnectionEvent::ready) return apply(peer, PeerConnectionEvent::ready);
    if (news == transport::ConnectionEvent::surpassed) return request_close(peer);
    if (peer.state == ConnectionState::connecting) peer.backoff = kBackoff;
    apply(peer, news == transport::ConnectionEvent::broken ? PeerConnectionEvent::broken : PeerConnectionEvent::close);
}

bool try_close(Peer& peer) { return peer.controls.empty() && peer.shm_path.try_close(); }

void on_peer_dead(Peer& peer) {
    peer.dead = true;
    peer.base->close();
    peer.open_deferred = false;
    apply(peer, PeerConnectionEvent::peer_dead);
    peer.controls.clear();
    stop_asking_after(peer);
}

}  // namespace starling::link
