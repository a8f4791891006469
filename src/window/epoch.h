// Epochs of a window (MPI 5.0 section 12.5): fence, post and start, locks. Functions return an error class with failure_text().
#pragma once

#include "comm/group.h"
#include "window/window.h"

namespace starling::window {

/// Checks that the current epoch allows an access to that rank; returns MPI_ERR_RMA_SYNC if not. In an epoch of MPI_Win_lock_all it
/// acquires the rank's lock if needed.
int begin_access(Window& window, WindowTarget& remote);

int fence(Window& window, int assertion);
int start(Window& window, const comm::Group& group, int assertion);
int complete(Window& window);
int post(Window& window, const comm::Group& group, int assertion);
/// Implements MPI_Win_wait, and with a non-null `flag` MPI_Win_test. Like start(), it fails as soon as one member of the group has failed.
int wait(Window& window, bool* flag);
int lock(Window& window, LockHeld kind, int rank, int assertion);
int unlock(Window& window, int rank);
int lock_all(Window& window, int assertion);
int unlock_all(Window& window);
/// Waits until this process's accesses to that rank are complete at both ends.
int flush(Window& window, int rank);
int flush_all(Window& window);
/// A program may wait for a value by a loop of gets and flushes, each of which completes without a poll. Other processes may need this
/// process or its core meanwhile. So every kFlushesPerLook-th flush without pending accesses polls; requests that are complete at once are
/// counted too.
constexpr uint32_t kFlushesPerLook = 16;
extern uint32_t idle_flushes;
/// Makes stores of other processes visible here, and this process's stores visible to them.
void sync(Window& window);
/// Before the window is destroyed: cancels the receives that failed epochs have left, and keeps the posts that were not sent.
void leave_epochs(Window& window);
/// Returns MPI_ERR_RMA_SYNC if an epoch is open in which the window cannot be freed.
int check_idle(const Window& window);

/// Waits for all members, for MPI_Win_fence. Returns MPI_ERR_RMA_SYNC if it detects that some have called MPI_Win_free.
int barrier(Window& window);
/// Waits for all members, for MPI_Win_free.
int last_barrier(Window& window);

}  // namespace starling::window
