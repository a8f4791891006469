// The connection manager: decides when to request a connection, and makes the peer's transport carry out the decisions of link/connection.
#pragma once

#include "link/peer.h"

namespace starling::link {

/// Applies an event to a connection. `offer` is the payload of open or accept.
void apply(Peer& peer, PeerConnectionEvent event, const std::byte* offer = nullptr);
/// Sends open, accept or refuse, with at most transport::Connector::kOffer bytes from the transport.
void send_about_connection(Peer& peer, packet::PacketKind kind, const void* offer, uint32_t bytes);
/// Requests a connection, unless there was a refusal recently. A connection of less value may be closed for it.
void consider_connection(Peer& peer);

void on_connection_packet(Peer& peer, const Packet& packet);
/// Handles the transport's events of the connection.
void on_news(Peer& peer, transport::ConnectionEvent news);
/// Writes the pending close to the ring and stops using the ring; returns false if there is no room yet.
bool try_close(Peer& peer);
/// Handles the death of the peer: closes the path to the peer, and returns its connection to the quota.
void on_peer_dead(Peer& peer);

void watch_ring(Peer& peer);
void unwatch_ring(Peer& peer);

}  // namespace starling::link
