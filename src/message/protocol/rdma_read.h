// RDMA read: the receiver's device reads the sender's memory, which the sender has registered and whose rkey is in the RTS.
//
//   when    between hosts, if an InfiniBand or RoCE connection is open and the data is contiguous on both sides. Both devices must
//           be able to register the memory.
//   costs   no copy; a registration, unless a recent one is cached. The sender may compute meanwhile.
//   starts  at the receiver, where it also ends; the memory stays registered until the send is done.
//   packet  only the FIN with which the receiver replies.
//   fails   with the connection, at any point: then the message is streamed from its beginning. A send that is abandoned deregisters
//           its memory at once, which breaks a connection that is reading; the stream then sends the copy. If the sender has ended,
//           the receive fails, but not before the device has released its buffer.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::rdma_read {

// Functions of the receiver, for the protocol's row in table.h.
bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);
void fail(const Gone& gone);

// Functions of the sender.
/// Registers the message's memory for its receiver, if that is possible now, and puts the rkey into the RTS.
void register_for_read(SendRequest& request, Rts& offer);
/// Deregisters the message's memory, if it was registered. `at_once`: a read by the receiver may be in progress and is aborted.
void deregister(SendRequest& request, bool at_once);

}  // namespace starling::message::rdma_read
