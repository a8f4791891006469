// Both-sided copy: the receiver reads chunks from the front, the sender writes chunks from the back, until they meet. Which chunk
// is whose is claimed in the receiver's memory (transport/shm/cooperative_copy.h).
//
//   when    as kernel_copy.h, if the receive's buffer is one block too and the sender another process. Chosen from
//           STARLING_SPLIT_LIMIT on, unless the core is crowded or long messages go the other way too, when each side is busy
//           with its own
//   costs   one copy, by two processors if the sender comes in time, and one packet more
//   starts  the receiver asks for help (`share_copy`) and begins; there are 16 such messages at a time, any other is copied by the
//           receiver alone
//   packet  `share_copy`: on_share(), the sender's part
//   fails   as a kernel copy does. What the sender could not write is read after all
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::both_sided {

bool can(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

/// The sender's part: writes the chunks that the receiver has not claimed.
void on_share(link::Peer& peer, const Share& share);

/// Gives up what is under way with those who are gone.
void fail(const Gone& gone);

}  // namespace starling::message::both_sided
