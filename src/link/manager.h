// The connection manager: carries out what link/connection decides, and decides when to ask.
#pragma once

#include "link/peer.h"

namespace starling::link {

void on_connection_packet(Peer& peer, const Packet& packet);
/// The close at the front of the peer's ring; it is not popped, the ring ends there.
void on_close_packet(Peer& peer);
/// Writes the pending close to the ring and leaves it; false if there is no room yet.
bool try_close(Peer& peer);
/// The peer's job is gone: gives its slot back.
void on_peer_dead(Peer& peer);

void watch_ring(Peer& peer);
void unwatch_ring(Peer& peer);
/// Skips a cell of our inbox that its sender claimed and died on.
bool recover_inbox();

}  // namespace starling::link
