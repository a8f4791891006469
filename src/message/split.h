// Large messages that both sides copy (transport/shm/split.h).
#pragma once

#include "link/peer.h"
#include "message/protocol.h"
#include "message/request.h"

namespace starling::message {

/// The receiver's part: begins to read the message into one block of memory and has the sender help. 0: under way
/// or done, `over` is called with the request when it is complete. Else an errno value as of a kernel copy,
/// nothing has been copied that matters; EAGAIN: not worth it, or no slot free: copy alone.
int start_split(ReceiveRequest& request, const Offer& offer, void* target, uint64_t bytes,
                void (*over)(ReceiveRequest& request, const Offer& offer, int error));

/// The sender's part: writes the chunks of `source` (a message of share.bytes) that the receiver has not claimed.
void help_copy(link::Peer& peer, const Share& share, const void* source);

/// Gives up what is under way with the peers of a dead job: `over` is called with ESRCH.
void fail_splits(link::Job& job);
/// The same for one process.
void fail_splits(link::Peer& peer);

}  // namespace starling::message
