// Prints the stack of a rank that crashes: `starling`, next to the job's launcher, reads it from outside, so that the crashed process runs
// only system calls. The signal then ends the process, with a core file where the system writes one.
#pragma once

#include <cstdint>

namespace starling::runtime {

/// Installs the handler for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT where the default action is in effect. Handlers of the program, and
/// its alternate signal stack, stay as they are. `owner`: the launcher's process, in this PID namespace. Installs nothing without a
/// `starling` in its directory, or if another user may change that file or directory.
void print_backtraces(int32_t owner, uint32_t rank);

}  // namespace starling::runtime
