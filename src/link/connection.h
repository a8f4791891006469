// The life of a connection, whatever the transport: a table of states and events. Both ends run the same machine;
// what it decides the peer's transport carries out (transport::Connector): for direct rings a slot is a ring of the own memory, for
// TCP a place among the connections of the process, offered by port and token. Tested exhaustively in
// tests/unit/link_connection_test.cpp.
#pragma once

#include <cstdint>

#include "base/counter_start.h"

namespace starling::link {

enum class State : uint8_t { closed, connecting, connected, quiescing };

enum class Event : uint8_t {
    want_open,   ///< traffic (or a hint) asks for the connection
    want_close,  ///< the limit asks for it back
    open,        ///< packet: the peer asks, and offers a slot for our sending
    accept,      ///< packet: the peer grants, with a slot for our sending
    refuse,      ///< packet: the peer has no slot to give
    close,       ///< last on the path: the peer has stopped sending on it
    ready,       ///< the path to the peer carries: a ring at once, TCP when it is connected
    broken,      ///< it does not, or not any more: could not connect, was reset
    peer_dead,   ///< the peer's job is gone
};

/// What to do on an event, in this order of bits.
enum Action : uint8_t {
    kNothing = 0,
    kTakeSlot = 1,     ///< take a slot of our own for the peer to write to; if none is free, see step()
    kUseOffer = 2,     ///< begin to send through the slot the packet named; `ready` tells that it can be done
    kSendOpen = 4,     ///< packet open with our slot, on the base path
    kSendAccept = 8,   ///< packet accept with our slot, on the base path
    kSendRefuse = 16,  ///< packet refuse, on the base path
    kSendClose = 32,   ///< close, last on the path; send on the base path from then on
    kGiveSlot = 64,    ///< our slot is drained and no longer written: free it
    kDefer = 128,      ///< keep the packet until the state is closed, then take it as if it came then
};

struct Step {
    State next;
    uint8_t actions;
};

/// The machine. `slot_free` says whether kTakeSlot would succeed. Events that make no sense in a state (a repeated
/// or late packet) change nothing.
Step step(State state, Event event, bool slot_free);

const char* name(State state);

/// How far a process had got when it sent a packet about the connection.
struct Stamp {
    uint16_t asked;  ///< opens that it had sent
    uint16_t heard;  ///< the peer's opens that it had seen
};

/// Which wish for a connection a packet is about. TCP may connect, serve and be closed while the packet that answered its `open` is still on
/// its way as a datagram: taken for a new wish it would have a connection opened that nobody waits for.
class PeerConnectionState {
  public:
    /// For the packet that is sent now.
    Stamp stamp(Event sent);
    /// Whether the packet, which has just come, is about the connection as it is now; else it is to be ignored.
    bool concerns(State state, Event event, Stamp theirs);
    Stamp so_far() const { return {asked_, heard_}; }
    uint16_t unanswered() const { return static_cast<uint16_t>(asked_ - answered_); }
    bool crossed() const { return crossed_; }

  private:
    static constexpr auto kStart = static_cast<uint16_t>(kCounterStart);
    uint16_t asked_ = kStart, heard_ = kStart;
    uint16_t answered_ = kStart;  ///< of our opens, the last to which an answer has come
    bool crossed_ = false;        ///< the peer had asked before it saw that we did
};

}  // namespace starling::link
