// Kernel copy: the receiver reads the sender's memory by a system call (the equivalent of RDMA read within a host).
//
//   when    within a host, if the sender's data is contiguous and STARLING_SINGLE_COPY is not off. The last choice, if no other
//           protocol pays.
//   costs   one copy, by the receiver alone: the sender may compute meanwhile. A microsecond to start, and page lookups.
//   starts  within the match, where it also ends.
//   packet  only the FIN with which the receiver replies.
//   fails   if the kernel forbids it or cannot reach the memory, or if the sender's program has reused its buffer meanwhile
//           (cancel_send.cpp): then the message is sent as fragments. If the sender has ended, the receive fails.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::kernel_copy {

bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);

/// Returns whether this process can read the message by loads, because the memory is its own or mapped here.
bool is_mapped(const Matched& message);

/// Handles the end of a copy; `error` is an errno value or 0. Completes the receive, or requests the message as fragments.
void settle(const Matched& message, int error);

}  // namespace starling::message::kernel_copy
