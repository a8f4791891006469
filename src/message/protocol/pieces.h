// Fragments (protocol `pieces`): the message is cut, and each fragment is a packet on the best path of this host that has room.
//
//   when    within a host, always. Chosen if the sender waits in the library and has a core, because the fragments then arrive without
//           delay. Chosen too where the kernel cannot copy (scattered data of the sender, forbidden, a device's memory).
//           Where the kernel can copy too, the faster way by the messages' times is preferred (timed_copy.h).
//   costs   two copies, which overlap except for the first and the last fragment; no system call.
//   starts  with the receiver's CTS; a sender that can predict the CTS starts right after its RTS (rendezvous.h).
//   packet  `fragment`: incoming.h.
//   fails   only with a process: the receive fails with its sender, the send with its receiver. It needs no other resource.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::pieces {

/// Fragments of one message that are sent in a row before other messages of the peer are served.
inline constexpr int kAtOnce = 32;

// Functions of the receiver, for the protocol's row in table.h.
bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

/// Returns whether fragments would arrive through the ring without delay: the sender waits in the library, has a core, and is not busy reading
/// from this process.
bool arrive_without_delay(const link::Peer& peer, const Rts& offer);

// Functions of the sender.
/// Sends fragments up to byte `until`, but at most kAtOnce, addressed to the receive with that request id (0, 0: sent before a CTS). Then
/// wakes the receiver if it sleeps. Returns whether they have been sent; otherwise there was no room.
bool put(SendRequest& request, uint64_t until, uint32_t serial, uint32_t generation);
/// Sends more fragments after a CTS; returns true when all have been sent.
bool advance(SendRequest& request);

}  // namespace starling::message::pieces
