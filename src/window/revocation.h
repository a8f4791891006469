// Revocation of windows (MPIX_Win_revoke). A window is revoked with its private communicator (comm/failures.h). Then every pending and
// later operation on the window ends with MPIX_ERR_REVOKED: waits for locks end, and accesses that use packets are abandoned. Accesses by
// RDMA last until the device has completed them. Locks that this process holds stay held until MPI_Win_unlock or MPI_Win_free.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include "window/window.h"

namespace starling::window {

/// Revokes the window at all its members. Not collective. No effect if it is revoked already.
void revoke(Window& window);

/// Returns whether this process knows that the window is revoked.
inline bool is_revoked(const Window& window) { return window.comm->collective.revoked(); }

/// Returns MPIX_ERR_REVOKED with failure_text().
[[gnu::cold]] int why_revoked();

/// Makes a revocation end the window's accesses. Call it when the window has its communicator.
void end_accesses_at_revocation(Window& window);

/// Prepares the destruction of a revoked window, without waiting for other processes: releases all locks, and notifies all members once more.
/// A member that does not know of the revocation yet would otherwise get another error for an access to memory that is no longer exposed.
void leave_revoked(Window& window);

}  // namespace starling::window
