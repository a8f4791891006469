// Memory barriers that one process executes in other processes, at whatever instruction they are. Code that runs often in the other
// processes can then do without barriers. Each call is a system call (membarrier), which interrupts the cores on which these processes run:
// about a microsecond.
#pragma once

#include <cstdint>

namespace starling {

/// Returns whether the kernel lets this process call barrier_everywhere().
bool can_have_barriers();

/// Registers this process, so that from now on the barriers of other processes reach it too. Returns false if the kernel does not support
/// that. Costs almost nothing in a process of one thread; with more threads it takes a kernel grace period, some 20 ms.
bool register_for_barriers();
bool is_registered_for_barriers();
bool has_one_thread();

/// Executes a full barrier in every registered process. Everything that such a process stored before some moment within this call is
/// visible to all when the call returns. Everything that it loads after that moment shows the stores that this process made before the
/// call.
void barrier_everywhere();

}  // namespace starling
