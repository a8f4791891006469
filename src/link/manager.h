// The connection manager: decides when to ask for a connection, and has the peer's transport carry out what link/connection decides.
#pragma once

#include "link/peer.h"

namespace starling::link {

/// Lets an event happen to a connection. `offer` is the payload of open or accept.
void apply(Peer& peer, Event event, const std::byte* offer = nullptr);
/// Sends open, accept or refuse, with at most transport::Connector::kOffer bytes of the transport's.
void send_about_connection(Peer& peer, packet::Kind kind, const void* offer, uint32_t bytes);
/// Asks for a connection, unless there was a refusal lately; one of less value may have to go for it.
void want_connection(Peer& peer);

void on_connection_packet(Peer& peer, const Packet& packet);
/// What the transport tells of the connection.
void on_news(Peer& peer, transport::ConnectionEvent news);
/// Writes the pending close to the ring and leaves it; false if there is no room yet.
bool try_close(Peer& peer);
/// The peer is gone: closes its path, and gives its connection's place back.
void on_peer_dead(Peer& peer);

void watch_ring(Peer& peer);
void unwatch_ring(Peer& peer);

}  // namespace starling::link
