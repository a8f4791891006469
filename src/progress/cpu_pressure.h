// Detects whether the machine has more runnable threads than cores, in all processes together.
#pragma once

namespace starling::progress {

/// Returns whether more threads want to run on this machine than it has cores, so that a spinning wait takes a core from one of them. This
/// is the only sign of a rank in another container on this machine: no visible table lists it, and a wait that spins on its core loses no
/// slice. Costs a system call of 1 to 3 µs. Returns false if the kernel does not report it. Needs the library's lock.
bool cores_are_short();

}  // namespace starling::progress
