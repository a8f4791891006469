// Locks of targets (MPI 5.0 section 12.5.3): on the board within a host, by packets between hosts.
#pragma once

#include "window/window.h"

namespace starling::window {

/// Ends this process's part in the board, behind the barrier of MPI_Win_free; the window is destroyed next. If `all_have_come` to that
/// barrier, it takes first what other hosts' processes have given back, whose packets may still be on their way. Returns whether the
/// board's memory is this process's to free. Without the barrier, after a death, others may be at the board for long: nobody frees it.
bool leave_board(Window& window, bool all_have_come);

/// Waits until the lock is had. MPI_ERR_PROC_ABORTED with failure_text() if the target has ended.
int take_lock(Window& window, Remote& remote, LockHeld kind);
/// Gives it back; all accesses are over.
void give_back(Window& window, Remote& remote);

/// Takes the shared locks of all processes of this host, in their order: so processes that do wait for each other in no circle. A dead
/// process has none.
void take_all_on_board(Window& window);
/// Gives back what an epoch of MPI_Win_lock_all has.
void give_all_back(Window& window);

/// Before a window is made: others may have it, and ask for locks, a little earlier.
void listen_for_locks();
/// While this exists a window is being created, by one thread: asks for windows that do not exist yet are kept. Those that are left
/// when no creation is under way any more are refused.
class Making {
  public:
    Making();
    ~Making();
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
};
/// When it is made: what was asked for until then is taken up.
void take_early_messages(Window& window);

}  // namespace starling::window
