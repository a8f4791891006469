#include "link/connection.h"

namespace starling::link {

// Simultaneous `open` packets need no tie-break: each carries a slot, so each serves as the accept of the other. (If both processes offer
// TCP ports, the transport decides which of them connects.) A process replies to a `close` by a `close` on the path itself, after
// everything sent on it, so nothing is lost. An `open` travels on the base path. If it overtakes the peer's `close`, it is deferred until
// the `close` has arrived. A broken connection is closed without a packet, since the peer notices the break too. Only a connection that
// never opened is refused, because the peer would wait for it.
ConnectionStep step(ConnectionState state, PeerConnectionEvent event, bool slot_free) {
    if (event == PeerConnectionEvent::peer_dead) {
        const bool has_slot = state != ConnectionState::closed;
        return {ConnectionState::closed, static_cast<uint8_t>(has_slot ? kGiveSlot : kNothing)};
    }
    switch (state) {
        case ConnectionState::closed:
            if (event == PeerConnectionEvent::want_open && slot_free)
                return {ConnectionState::connecting, kTakeSlot | kSendOpen};
            if (event == PeerConnectionEvent::open && slot_free)
                return {ConnectionState::connecting, kTakeSlot | kUseOffer | kSendAccept};
            if (event == PeerConnectionEvent::open) return {ConnectionState::closed, kSendRefuse};
            break;
        case ConnectionState::connecting:
            if (event == PeerConnectionEvent::accept || event == PeerConnectionEvent::open)
                return {ConnectionState::connecting, kUseOffer};
            if (event == PeerConnectionEvent::ready) return {ConnectionState::connected, kNothing};
            if (event == PeerConnectionEvent::refuse) return {ConnectionState::closed, kGiveSlot};
            if (event == PeerConnectionEvent::broken) return {ConnectionState::closed, kSendRefuse | kGiveSlot};
            break;
        case ConnectionState::connected:
            if (event == PeerConnectionEvent::want_close) return {ConnectionState::quiescing, kSendClose};
            if (event == PeerConnectionEvent::close) return {ConnectionState::closed, kSendClose | kGiveSlot};
            if (event == PeerConnectionEvent::open) return {ConnectionState::connected, kDefer};
            if (event == PeerConnectionEvent::broken) return {ConnectionState::closed, kGiveSlot};
            break;
        case ConnectionState::quiescing:
            if (event == PeerConnectionEvent::close || event == PeerConnectionEvent::broken)
                return {ConnectionState::closed, kGiveSlot};
            if (event == PeerConnectionEvent::open) return {ConnectionState::quiescing, kDefer};
            break;
    }
    return {state, kNothing};
}

Stamp PeerConnectionState::stamp(PeerConnectionEvent sent) {
    if (sent == PeerConnectionEvent::open) {
        ++sent_;
        crossed_ = false;
    }
    return so_far();
}

// Packets of one process arrive in order, and each `open` has one reply. If the peer sent an `open` before it received ours, that `open` is
// the reply to our first `open` without one. It is valid if we still wait for that reply. It is late if we are connected by then, or have
// requested another connection.
bool PeerConnectionState::concerns(ConnectionState state, PeerConnectionEvent event, Stamp theirs) {
    if (static_cast<int16_t>(theirs.received - answered_) > 0) answered_ = theirs.received;
    switch (event) {
        case PeerConnectionEvent::open:
            received_ = theirs.sent;
            if (unanswered() == 0) return true;
            ++answered_;
            crossed_ = unanswered() == 0 && state == ConnectionState::connecting;
            return crossed_;
        case PeerConnectionEvent::accept:
            return theirs.received == sent_;
        case PeerConnectionEvent::refuse:
            return theirs.received == sent_ || crossed_;
        default:
            return true;
    }
}

const char* name(ConnectionState state) {
    switch (state) {
        case ConnectionState::closed:
            return "closed";
        case ConnectionState::connecting:
            return "connecting";
        case ConnectionState::connected:
            return "connected";
        case ConnectionState::quiescing:
            return "quiescing";
    }
    return "?";
}

}  // namespace starling::link
