// The connection manager: carries out what link/connection decides, and decides when to ask.
#pragma once

#include "link/peer.h"

namespace starling::link {

/// How one kind of connection carries out what the machine decides (the actions of link/connection.h).
struct Medium {
    bool (*slot_free)();
    void (*take_slot)(Peer& peer);
    /// Writes what `open` or `accept` carries into `payload` (shm::kInlineBytes), and gives its length.
    uint32_t (*describe_slot)(Peer& peer, packet::Kind kind, std::byte* payload);
    void (*use_offer)(Peer& peer, packet::Kind kind, const std::byte* offer);
    void (*send_close)(Peer& peer);
    void (*give_slot)(Peer& peer);
    /// Visits the peers that have a slot, whatever their state.
    void (*each_user)(void (*visit)(Peer& peer, void* argument), void* argument);
};
extern const Medium kRings, kWires;

/// Lets an event happen to a connection. `offer` is the payload of open or accept.
void apply(Peer& peer, Event event, const std::byte* offer = nullptr);
/// Asks for a connection, unless there was a refusal lately; one of less value may have to go for it.
void want_connection(Peer& peer);

void on_connection_packet(Peer& peer, const Packet& packet);
/// The close at the front of the peer's ring; it is not popped, the ring ends there.
void on_close_packet(Peer& peer);
/// Writes the pending close to the ring and leaves it; false if there is no room yet.
bool try_close(Peer& peer);
/// The peer's job is gone: gives its slot back.
void on_peer_dead(Peer& peer);

/// The job is about to be forgotten: nothing here names a peer of it any more.
void forget_sender(const Job& job);
void watch_ring(Peer& peer);
void unwatch_ring(Peer& peer);
/// Skips a cell of our inbox that its sender claimed and died on.
bool recover_inbox();

}  // namespace starling::link
