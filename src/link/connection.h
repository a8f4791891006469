// The state machine of a connection, of any transport: a table of states and events. Both ends run it, and the peer's transport carries out
// its decisions (transport::Connector). For direct rings a slot is a ring in this process's memory; for TCP it is one of the process's
// connections, offered by port and token. Tested exhaustively in tests/unit/link_connection_test.cpp.
#pragma once

#include <cstdint>

#include "base/counter_start.h"

namespace starling::link {

enum class ConnectionState : uint8_t { closed, connecting, connected, quiescing };

enum class PeerConnectionEvent : uint8_t {
    want_open,   ///< traffic (or a hint) asks for the connection
    want_close,  ///< the connection must make room in the quota for another one
    open,        ///< packet: the peer requests a connection, and offers a slot for us to write to
    accept,      ///< packet: the peer accepts, with a slot for us to write to
    refuse,      ///< packet: the peer has no free slot
    close,       ///< last packet on the path: the peer has stopped sending on it
    ready,       ///< the path to the peer is usable: a ring is at once, TCP when it is connected
    broken,      ///< the path is unusable: the connection could not be set up, or was reset
    peer_dead,   ///< the peer's job has ended
};

/// The actions that an event requires, as bits, to be carried out in this order.
enum ConnectionAction : uint8_t {
    kNothing = 0,
    kTakeSlot = 1,     ///< reserve one of our slots for the peer to write to; if none is free, see step()
    kUseOffer = 2,     ///< start to send through the slot in the packet; the event `ready` follows when that is possible
    kSendOpen = 4,     ///< send packet open with our slot, on the base path
    kSendAccept = 8,   ///< send packet accept with our slot, on the base path
    kSendRefuse = 16,  ///< send packet refuse, on the base path
    kSendClose = 32,   ///< send packet `close` as the last one on the path; from then on send on the base path
    kGiveSlot = 64,    ///< free our slot: the peer no longer writes to it, and all of its packets were read
    kDefer = 128,      ///< store the packet until the state is closed, then process it as if it had just arrived
};

struct ConnectionStep {
    ConnectionState next;
    uint8_t actions;
};

/// The state machine. `slot_free` is whether kTakeSlot would succeed. Events that are invalid in a state (a repeated or late packet) change
/// nothing.
ConnectionStep step(ConnectionState state, PeerConnectionEvent event, bool slot_free);

const char* name(ConnectionState state);

/// The numbers of `open` packets that a process had sent and received when it sent a packet about the connection.
struct Stamp {
    uint16_t sent;      ///< number of opens that it had sent
    uint16_t received;  ///< number of opens that it had received from the peer
};

/// Decides whether a packet about a connection belongs to the present request for one. A TCP connection may have been opened, used and
/// closed while the packet that replied to its `open` is still in transit as a datagram. If that packet were taken for the reply to a new
/// request, a connection would open for which neither process waits.
class PeerConnectionState {
  public:
    /// Returns the stamp for a packet that is sent now.
    Stamp stamp(PeerConnectionEvent sent);
    /// Returns whether an arrived packet belongs to the present request; if not, the caller ignores the packet.
    bool concerns(ConnectionState state, PeerConnectionEvent event, Stamp theirs);
    Stamp so_far() const { return {sent_, received_}; }
    uint16_t unanswered() const { return static_cast<uint16_t>(sent_ - answered_); }
    bool crossed() const { return crossed_; }

  private:
    static constexpr auto kStart = static_cast<uint16_t>(kCounterStart);
    uint16_t sent_ = kStart, received_ = kStart;
    uint16_t answered_ = kStart;  ///< number of the last `open` of ours that has a reply
    bool crossed_ = false;        ///< whether the peer sent its `open` before it received ours
};

}  // namespace starling::link
