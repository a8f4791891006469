// Pieces: the message is cut, and each piece is a packet on the best path of this host that has room.
//
//   when    within a host, always. Chosen where the sender waits in the library and has a core, as the pieces then come without
//           delay, and where the kernel can't copy (scattered data of the sender, forbidden, a device's memory)
//   costs   two copies, beside each other but for the first and the last piece; nothing of the kernel
//   starts  the receiver asks (`clear_to_stream`); a sender that can foresee that begins with the offer (rendezvous.h)
//   packet  `piece`: incoming.h
//   fails   with its sender: the receive fails; with its receiver: the send does. Never for want of anything
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::pieces {

/// Of one message, those that go out before others have their turn.
inline constexpr int kAtOnce = 32;

// The receiver's side (table.h).
bool can(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

// The sender's side.
/// Sends the next piece, for the receive of that name (0, 0: it was not asked for); false if there is no room.
bool put(SendRequest& request, uint32_t serial, uint32_t generation);
/// Goes on with what was asked for; true when all has gone.
bool advance(SendRequest& request);

}  // namespace starling::message::pieces
