// Failures of targets whose memory is mapped here. The memory outlives its process, so accesses to it would succeed after the target's death,
// and a program that polls it would never learn that nobody changes it any more. Accesses to other targets fail in rma.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include "window/window.h"

namespace starling::window {

/// Makes accesses to mapped memory fail once their target has failed. Call it before the first window is created.
void watch_targets();

/// Returns whether the target's memory is mapped here and its process has failed.
inline bool has_failed_mapped(const WindowTarget& remote) {
    return remote.target.mapped && remote.target.peer && remote.target.peer->dead;
}

/// Returns MPI_ERR_PROC_ABORTED for an access to a failed target, with failure_text().
[[gnu::cold]] int why_target_failed(const WindowTarget& remote);

}  // namespace starling::window
