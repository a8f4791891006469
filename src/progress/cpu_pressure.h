// Whether the machine has more work than cores, whoever's it is.
#pragma once

namespace starling::progress {

/// More threads want to run on this machine than it has cores: who only waits takes a core from one of them. A rank of another
/// host, as in a container beside ours, is told by nothing else: it is in no table that we see, and who spins in its way never
/// loses a slice itself. Costs a system call of 1 to 3 µs. False where the kernel doesn't say. Needs the library's lock.
bool cores_are_short();

}  // namespace starling::progress
