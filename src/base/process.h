// Whether a process still runs, and how this one ends at once.
#pragma once

#include <sys/types.h>

namespace starling {

/// Whether no thread of process `pid` can execute any more: it is gone, or a zombie that no one has waited
/// for yet. A system call or a few; for slow paths.
bool process_gone(pid_t pid);

/// Writes out what the program has printed, before _exit(). Standard output and error only, and neither if another thread
/// has it for longer than a moment: fflush(nullptr) waits for one that reads standard input, for instance.
void flush_output();

}  // namespace starling
