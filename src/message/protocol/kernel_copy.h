// Kernel copy: the receiver reads the sender's memory by a system call (RDMA read, elsewhere).
//
//   when    within a host, if the sender's data is one block and STARLING_SINGLE_COPY is not off. What is left when nothing else
//           pays
//   costs   one copy, by the receiver alone: the sender may compute meanwhile. A microsecond to start, pages to look up
//   starts  and ends within the match
//   packet  none of its own; the answer is `fetched`
//   fails   where the kernel forbids it or can't reach the memory, and where the sender's program has taken its buffer back
//           meanwhile (cancel_send.cpp): then it is pieces. If the sender has ended, the receive fails
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::kernel_copy {

bool can(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

/// Whoever copied is through, with an errno value or 0: completes the receive, or has the message come another way.
void settle(const Matched& message, int error);

}  // namespace starling::message::kernel_copy
