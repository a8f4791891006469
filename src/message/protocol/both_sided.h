// Both-sided copy: the receiver reads chunks from the front, the sender writes chunks from the back, until they meet. Each side claims
// its chunks in the receiver's memory (transport/shm/cooperative_copy.h).
//
//   when    as for kernel_copy.h, if the receive buffer is contiguous too and the sender is another process. Chosen from
//           STARLING_SPLIT_LIMIT on, unless the core is crowded. Not chosen while long messages also travel to the sender, because
//           each side is then busy with its own.
//   costs   one copy, by two processors if the sender polls in time, and one more packet.
//   starts  the receiver asks for help (`share_copy`) and starts to read. At most 16 such messages are in progress; the receiver copies
//           any other alone.
//   packet  `share_copy`: on_share(), the sender's part.
//   fails   as a kernel copy does. The receiver reads the chunks that the sender could not write.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::both_sided {

bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

/// Copies the sender's part: writes the chunks that the receiver has not claimed.
void on_share(link::Peer& peer, const ShareCopy& share);

/// Ends the copies that failed processes take part in.
void fail(const Gone& gone);

}  // namespace starling::message::both_sided
