// RDMA write: the sender's device writes the message into the receiver's memory, and tells the receiver so in the same breath: by a word chained
// behind the write ("write"), or with the write itself ("note", write with immediate), which is one piece of work less.
//
//   when    as of RDMA read, whose offer it takes: that the sender's memory is lent says that its device takes it
//   costs   no copy, but a packet more than RDMA read, and the sender has to look
//   starts  the receiver asks for a stream, and tells besides where its memory is; from then on the sender's answer may be either
//   packet  `clear_to_stream`, longer (CtsRdmaWrite); the word is the connection's own; the answer is `fetched`
//   fails   with the receiver's end of the connection: what it expected by that can't be written any more, so it asks for the stream, of
//           which nothing has come. A sender that can't write sends the stream at once, one that fails waits to be asked: so there are
//           pieces only when nobody writes. If the sender is gone so is the connection, before the receive fails
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::rdma_write {

// The receiver's side (table.h).
bool can(const Matched& message);
bool pays(const Matched& message);
bool start_chained(const Matched& message);
bool start_noted(const Matched& message);
/// The receive ends: whoever may write its memory does not from now on. `at_once`: somebody may.
void call_off(ReceiveRequest& request, bool at_once);

// The sender's side.
/// False: it has to be a stream.
bool begin(SendRequest& request, const CtsRdmaWrite& clear);
/// The message has arrived, or goes another way: what is under way is its device's business.
void detach(SendRequest& request);

}  // namespace starling::message::rdma_write
