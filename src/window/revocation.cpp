#include "window/revocation.h"

#include "base/error.h"
#include "comm/failures.h"
#include "mpi-ext.h"
#include "window/lock.h"

namespace starling::window {

namespace {

void end_accesses(comm::Comm& comm) {
    Window* const window = window_of(comm.context());
    if (!window) return;
    for (WindowTarget* const remote : window->used) {
        remote->mapped = false;  // so that later accesses do not take the fast path
        why_revoked();
        rma::end_accesses(remote->target, MPIX_ERR_REVOKED);
    }
}

}  // namespace

void revoke(Window& window) { comm::revoke(*window.comm); }

int why_revoked() {
    return fail(
        MPIX_ERR_REVOKED,
        "the window is revoked: free it, and create another one on a communicator of the living members (MPIX_Comm_shrink)");
}

void end_accesses_at_revocation(Window& window) { window.comm->on_revoked = end_accesses; }

void leave_revoked(Window& window) {
    for (WindowTarget* const remote : window.used) rma::wait_until_complete(remote->target);  // accesses by RDMA
    for (WindowTarget* const remote : window.used)
        if (!window.on_board || remote->local < 0) release_lock(window, *remote);
    if (window.on_board) release_all_locks(window);
    comm::announce_revocation(*window.comm);
}

}  // namespace starling::window
