#include "link/connection.h"

namespace starling::link {

// Simultaneous requests need no tie-break. Each end's open carries a slot, so the two opens serve as each other's accepts. (If both
// processes offer TCP ports, the transport decides which of them connects.) A close is answered by a close on the path itself, after
// everything sent on it, so nothing is lost. An open travels on the base path, and if it overtakes the peer's close, it waits for it. A
// broken connection is closed without an answer, since the peer sees the same. Only one that never opened is refused, because the peer
// would wait.
Step step(State state, Event event, bool slot_free) {
    if (event == Event::peer_dead) {
        const bool has_slot = state != State::closed;
        return {State::closed, static_cast<uint8_t>(has_slot ? kGiveSlot : kNothing)};
    }
    switch (state) {
        case State::closed:
            if (event == Event::want_open && slot_free) return {State::connecting, kTakeSlot | kSendOpen};
            if (event == Event::open && slot_free) return {State::connecting, kTakeSlot | kUseOffer | kSendAccept};
            if (event == Event::open) return {State::closed, kSendRefuse};
            break;
        case State::connecting:
            if (event == Event::accept || event == Event::open) return {State::connecting, kUseOffer};
            if (event == Event::ready) return {State::connected, kNothing};
            if (event == Event::refuse) return {State::closed, kGiveSlot};
            if (event == Event::broken) return {State::closed, kSendRefuse | kGiveSlot};
            break;
        case State::connected:
            if (event == Event::want_close) return {State::quiescing, kSendClose};
            if (event == Event::close) return {State::closed, kSendClose | kGiveSlot};
            if (event == Event::open) return {State::connected, kDefer};
            if (event == Event::broken) return {State::closed, kGiveSlot};
            break;
        case State::quiescing:
            if (event == Event::close || event == Event::broken) return {State::closed, kGiveSlot};
            if (event == Event::open) return {State::quiescing, kDefer};
            break;
    }
    return {state, kNothing};
}

Stamp PeerConnectionState::stamp(Event sent) {
    if (sent == Event::open) {
        ++asked_;
        crossed_ = false;
    }
    return so_far();
}

// Packets of one process arrive in order, and each open has one answer. An open that the peer sent before it received ours is the answer to
// the first of ours that has none yet. It is valid if we still wait for that answer, and late if we are connected by then or ask for
// another connection.
bool PeerConnectionState::concerns(State state, Event event, Stamp theirs) {
    if (static_cast<int16_t>(theirs.heard - answered_) > 0) answered_ = theirs.heard;
    switch (event) {
        case Event::open:
            heard_ = theirs.asked;
            if (unanswered() == 0) return true;
            ++answered_;
            crossed_ = unanswered() == 0 && state == State::connecting;
            return crossed_;
        case Event::accept:
            return theirs.heard == asked_;
        case Event::refuse:
            return theirs.heard == asked_ || crossed_;
        default:
            return true;
    }
}

const char* name(State state) {
    switch (state) {
        case State::closed:
            return "closed";
        case State::connecting:
            return "connecting";
        case State::connected:
            return "connected";
        case State::quiescing:
            return "quiescing";
    }
    return "?";
}

}  // namespace starling::link
