// RDMA write: the sender's device writes the message into the receiver's memory and notifies the receiver. Either a separate word
// follows the write (protocol `write`), or the write carries an immediate (protocol `note`), which saves one work request.
//
//   when    as for RDMA read, with the same RTS: an rkey in it shows that the sender's device accepts the memory.
//   costs   no copy, but one packet more than RDMA read, and the sender has to poll.
//   starts  with a CTS that also carries the rkey of the receiver's memory; the sender may answer it by a write or by a stream.
//   packet  `clear_to_stream`, longer (CtsRdmaWrite); the notification belongs to the connection; the receiver replies with a FIN.
//   fails   with the receiver's end of the connection. The RDMA target can then no longer be written and no fragment has arrived, so
//           the receiver asks for the stream. A sender that cannot write streams at once; after a failed write it waits for that
//           new CTS. So fragments never overlap with a write. If the sender has failed, its connection ends before the receive fails.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::rdma_write {

// Functions of the receiver, for the protocol's row in table.h.
bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start_chained(const Matched& message);
bool start_noted(const Matched& message);
/// Withdraws the RDMA target of a receive that ends: no device may write its memory any more. `at_once`: a write may be in progress.
void call_off(ReceiveRequest& request, bool at_once);

// Functions of the sender.
/// Starts the write. Returns false if the message must be streamed instead.
bool begin(SendRequest& request, const CtsRdmaWrite& clear);
/// Detaches the request from its RDMA write, because the message has arrived or another protocol sends it. The device completes the write
/// without the request.
void detach(SendRequest& request);

}  // namespace starling::message::rdma_write
