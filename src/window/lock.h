// Locks of targets (MPI 5.0 section 12.5.3): through the lock table within a host, by packets between hosts.
#pragma once

#include "window/window.h"

namespace starling::window {

/// Ends this process's use of the lock table, after the barrier of MPI_Win_free; the window is destroyed next. If the barrier succeeded
/// (`all_have_come`), it first waits for the releases of processes on other hosts, whose packets may still be on their way. Returns whether
/// this process must free the table's memory. If the barrier failed because of a death, no process frees it, since others may use the table
/// for a long time.
bool leave_board(Window& window, bool all_have_come);

/// Waits until the lock is acquired. Returns MPI_ERR_PROC_ABORTED with failure_text() if the target has ended.
int acquire_lock(Window& window, WindowTarget& remote, LockHeld kind);
/// Releases the lock. All accesses to the target must be complete.
void release_lock(Window& window, WindowTarget& remote);

/// Acquires the shared locks of all processes of this host, always in the order of their numbers on the host, so that processes cannot wait
/// for each other in a cycle. Skips dead processes.
void acquire_whole_table(Window& window);
/// Releases the locks of an MPI_Win_lock_all epoch.
void release_all_locks(Window& window);

/// Registers the handler of lock packets. Call it before a window is created: other members may finish its creation earlier and request
/// locks.
void listen_for_locks();
/// Marks that a thread is creating a window, for its lifetime. While such an object exists, lock requests for unknown windows are kept.
/// When the last one ends, the remaining requests are refused.
class Making {
  public:
    Making();
    ~Making();
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
};
/// Handles the lock requests that arrived before the window was created.
void handle_stored_messages(Window& window);

}  // namespace starling::window
