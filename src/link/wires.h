// TCP connections to peers on other hosts: what link/connection decides is carried out here by transport/ip/tcp. A
// process without any has no TCP socket.
#pragma once

#include <cstdint>

#include "link/peer.h"
#include "transport/ip/stream.h"

namespace starling::link {

/// Receives, sends what waits, and takes note of connections that opened or ended. Whether anything happened.
bool poll_wires(uint64_t now);
/// When poll_wires() must be called though nothing is readable; ns, UINT64_MAX: never.
uint64_t wires_deadline();

/// The peer has told that an interface of its is down; the payload of the packet.
void on_rail_gone(Peer& peer, const std::byte* payload, uint32_t bytes);

/// Whether packets to the peer go by TCP now.
bool goes_by_wire(const Peer& peer);

/// Gives a stream to the peer's connection. False if there is none to take it. upcalls.stranded() tells if the
/// connection can't carry all of it.
bool send_by_wire(Peer& peer, ip::OutStream& stream);
/// The stream's memory is not read after this. For every stream that send_by_wire() took. `confirmed`: the receiver has it all.
void end_stream(ip::OutStream& stream, bool confirmed);
/// Whether the stream is in the hands of a connection that goes on with it.
bool is_by_wire(const ip::OutStream& stream);

}  // namespace starling::link
