// RDMA read: the receiver's device reads the sender's memory, which was lent to it with the offer.
//
//   when    between hosts, if a connection of an InfiniBand or RoCE device is open, the data is one block on both sides, and both
//           devices take the memory
//   costs   no copy; registering the memory, unless it was lately. The sender may compute meanwhile
//   starts  and ends at the receiver; the memory is lent for as long as the send is not done
//   packet  none of its own; the answer is `fetched`
//   fails   with the connection, at any point: then it is a stream, from the beginning. A send that is let go takes the memory back at
//           once, which breaks a connection that is reading; the sender has a copy for the stream. If the sender has ended, the receive
//           fails, but not before the device has let go of its buffer
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::rdma_read {

// The receiver's side (table.h).
bool can(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);
void fail(const Gone& gone);

// The sender's side.
/// Lends the message to its receiver, if that can be done now, and says so in the offer.
void lend(SendRequest& request, Rts& offer);
/// If it was lent. `at_once`: its receiver may be reading, and shall not any more.
void take_back(SendRequest& request, bool at_once);

}  // namespace starling::message::rdma_read
