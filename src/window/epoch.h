// Epochs of a window (MPI 5.0 section 12.5): fence, post and start, locks. Functions give an error class with failure_text().
#pragma once

#include "comm/group.h"
#include "window/window.h"

namespace starling::window {

/// MPI_ERR_RMA_SYNC if no epoch allows an access to that rank now. Takes the lock that MPI_Win_lock_all has promised.
int begin_access(Window& window, Remote& remote);

int fence(Window& window, int assertion);
int start(Window& window, const comm::Group& group, int assertion);
int complete(Window& window);
int post(Window& window, const comm::Group& group, int assertion);
/// MPI_Win_wait; with `flag` MPI_Win_test.
int wait(Window& window, bool* flag);
int lock(Window& window, LockHeld kind, int rank, int assertion);
int unlock(Window& window, int rank);
int lock_all(Window& window, int assertion);
int unlock_all(Window& window);
/// Waits until the accesses to that rank are over, at both ends.
int flush(Window& window, int rank);
int flush_all(Window& window);
/// Programs wait by getting and flushing in a loop. Where that needs nobody, others may need this process all the same, and its core: so
/// one flush in so many that have nothing to wait for looks around. A request that is done when it is made counts as one.
constexpr uint32_t kFlushesPerLook = 16;
extern uint32_t idle_flushes;
/// What another process has stored is seen, and the other way round.
void sync(Window& window);
/// MPI_ERR_RMA_SYNC if an epoch is open in which the window can't be freed.
int check_idle(const Window& window);

/// Waits for all members, as MPI_Win_fence does. MPI_ERR_RMA_SYNC if some have called MPI_Win_free, as far as that is seen.
int barrier(Window& window);
/// The same for MPI_Win_free.
int last_barrier(Window& window);

}  // namespace starling::window
