// Locks of targets (MPI 5.0 section 12.5.3): on the board within a host, by packets between hosts.
#pragma once

#include "window/window.h"

namespace starling::window {

/// Waits until the lock is had. MPI_ERR_PROC_ABORTED with failure_text() if the target has ended.
int take_lock(Window& window, Remote& remote, Held kind);
/// Gives it back; all accesses are over.
void give_back(Window& window, Remote& remote);

/// Before a window is made: others may have it, and ask for locks, a little earlier.
void listen_for_locks();
/// When it is made: what was asked for until then is taken up.
void take_early_messages(Window& window);

}  // namespace starling::window
