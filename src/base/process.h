// Whether a process still runs.
#pragma once

#include <sys/types.h>

namespace starling {

/// Whether no thread of process `pid` can execute any more: it is gone, or a zombie that no one has waited
/// for yet. A system call or a few; for slow paths.
bool process_gone(pid_t pid);

}  // namespace starling
