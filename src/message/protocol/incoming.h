// Receives whose data arrives as fragments, over any path: finds the receive of a fragment and counts the missing bytes. Within a host,
// fragments arrive once and in the order of their path. From another host they may arrive twice, so the ranges received are recorded, and
// the sender gets a FIN when all have arrived.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::incoming {

/// Registers a receive for the wanted bytes of its message and returns the CTS for the sender.
Cts list(const Matched& message);
/// Registers a receive for the wanted bytes of its message and sends the CTS.
void send_cts(const Matched& message);
/// Sends a CTS for fragments to the sender of a registered receive for which no data has arrived. An earlier CTS may have been sent.
void repeat_cts(const ReceiveRequest& request);
/// Returns the registered receive that waits for these bytes of a fragment; nullptr if no receive waits for them (any more).
ReceiveRequest* find(const link::Peer& peer, uint32_t serial, uint32_t generation, uint64_t offset, uint64_t bytes);
/// Counts bytes of a fragment that have been written to the receive's buffer; the last ones complete the receive.
void arrived(ReceiveRequest& request, uint64_t offset, uint64_t bytes);
/// Handles a packet of kind `fragment`.
void on_fragment(link::Peer& peer, const link::Packet& packet);
/// Fails the receives whose senders have failed.
void fail(const Gone& gone);

}  // namespace starling::message::incoming
