#include "link/manager.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/counters.h"
#include "base/state.h"
#include "link/places.h"
#include "link/remote.h"
#include "profile/record.h"

namespace starling::link {

namespace {

/// Windows of traffic to wait after a refusal, or after a connection that did not open.
constexpr uint32_t kBackoff = 16;
constexpr uint64_t kBytesLikeOne = 16384;  ///< of a streamed message, worth as much as one short one

STARLING_STATE bool replaces = true;
STARLING_STATE PlaceListener listener = nullptr;

void tell(Peer& peer, PlaceNews news) {
    if (listener) listener(peer, news);
}

/// A connection's worth: messages, and long ones by their length, lately more than long ago.
void note_value(Peer& peer) {
    peer.value = peer.value / 2 + peer.sent_since_check + static_cast<uint32_t>(peer.bytes_since_check / kBytesLikeOne);
    peer.sent_since_check = 0;
    peer.bytes_since_check = 0;
}

/// Null where packets have no better way than the base path, as to oneself.
transport::Connector* connector(const Peer& peer) {
    const bool own = &peer.job == self().job && peer.rank == self().rank;
    return own ? nullptr : peer.base->by.connector();
}

uint64_t has_connection(State state) { return state == State::connected || state == State::quiescing; }

void send_offer(Peer& peer, packet::Kind kind) {
    std::byte payload[transport::Connector::kOffer];
    const uint32_t bytes = connector(peer)->describe(*peer.base, kind, payload);
    send_control(peer, kind, payload, bytes);
}

bool gives_way(const Peer& user, const Peer& asking) {
    return user.planned || asking.planned ? user.planned < asking.planned : user.value < asking.value / 2;
}

// The limit is reached: let go of the connection of least priority in the plan, and among those that are in none the one that
// has carried least since it was last looked at, if that is worth less than half of the one that asks.
void make_room_for(Peer& asking) {
    if (!replaces) return;
    Peer* least = nullptr;
    const auto compare = [](void* one, void* argument) {
        Peer& user = *static_cast<Peer*>(one);
        Peer*& found = *static_cast<Peer**>(argument);
        if (user.state != State::connected) return;
        note_value(user);
        if (!found || std::tie(user.planned, user.value) < std::tie(found->planned, found->value)) found = &user;
    };
    connector(asking)->each_user(compare, &least);
    if (least && gives_way(*least, asking)) apply(*least, Event::want_close);
}

void finish(Peer& peer, transport::Connector& by) {
    by.finish(*peer.base);
    if (peer.near.close_pending && !try_close(peer)) mark_pending(peer);
}

}  // namespace

void apply(Peer& peer, Event event, const std::byte* offer) {
    transport::Connector* const by = connector(peer);
    const Step next = step(peer.state, event, by && by->has_place());
    const uint64_t had = has_connection(peer.state), has = has_connection(next.next);
    counters.connections += has - had;
    counters.opened += has > had;
    counters.closed += has < had;
    if (has != had && peer.traffic) [[unlikely]]
        profile::note_connection(*peer.traffic, has > had);
    peer.state = next.next;
    if (next.actions & kTakeSlot) {
        by->take_place(*peer.base);
        if (peer.near.in) watch_ring(peer);
    }
    if (next.actions & kUseOffer)
        by->use(*peer.base, event == Event::accept ? packet::Kind::accept : packet::Kind::open, offer);
    if (next.actions & kSendOpen) send_offer(peer, packet::Kind::open);
    if (next.actions & kSendAccept) send_offer(peer, packet::Kind::accept);
    if (next.actions & kSendRefuse) {
        ++counters.refused;
        send_control(peer, packet::Kind::refuse, nullptr, 0);
        if (event == Event::open) tell(peer, PlaceNews::turned_away);
    }
    if (next.actions & kSendClose) finish(peer, *by);
    if (next.actions & kGiveSlot) {
        unwatch_ring(peer);
        by->give_place(*peer.base);
        tell(peer, PlaceNews::let_go);
    }
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
    if (peer.dead || peer.near.close_pending || peer.state != State::closed || !connector(peer)) return;
    if (peer.backoff > 0) {
        --peer.backoff;
        return;
    }
    if (connector(peer)->has_place())
        apply(peer, Event::want_open);
    else
        make_room_for(peer);
}

void listen_to_places(PlaceListener whom) { listener = whom; }

void keep_connections() { replaces = false; }

void consider_opening(Peer& peer) {
    const transport::Connector* const by = connector(peer);
    if (!by || !by->earned(peer.sent_since_check, peer.bytes_since_check)) return;
    note_value(peer);
    want_connection(peer);
}

void request_connection(Peer& peer) {
    peer.backoff = 0;
    want_connection(peer);
}

void request_close(Peer& peer) {
    if (peer.state == State::connected) apply(peer, Event::want_close);
}

void on_connection_packet(Peer& peer, const Packet& packet) {
    std::byte offer[transport::Connector::kOffer] = {};
    std::memcpy(offer, packet.payload, std::min<size_t>(packet.header.bytes, sizeof offer));
    if (!connector(peer) || !connector(peer)->is_offer(offer)) return;
    switch (packet.header.kind) {
        case packet::Kind::open:
            return apply(peer, Event::open, offer);
        case packet::Kind::accept:
            return apply(peer, Event::accept, offer);
        case packet::Kind::refuse:
            peer.backoff = kBackoff;
            return apply(peer, Event::refuse);
        default:
            return;  // not of this version
    }
}

void on_news(Peer& peer, transport::News news) {
    if (news == transport::News::ready) return apply(peer, Event::ready);
    if (peer.state == State::connecting) peer.backoff = kBackoff;
    apply(peer, news == transport::News::broken ? Event::broken : Event::close);
}

bool try_close(Peer& peer) { return peer.controls.empty() && peer.near.try_close(); }

void on_peer_dead(Peer& peer) {
    peer.dead = true;
    peer.base->close();
    peer.open_deferred = false;
    apply(peer, Event::peer_dead);
    peer.controls.clear();
    stop_asking_after(peer);
}

}  // namespace starling::link
