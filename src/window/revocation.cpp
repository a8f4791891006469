#include "window/revocation.h"

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "comm/failures.h"
#include "mpi-ext.h"
#include "window/lock.h"

namespace starling::window {

namespace {

/// Messages of MPI_Win_post that were not sent when their window was freed. The reference to the communicator keeps their receivers.
struct LeftPosts {
    comm::Comm* comm;
    std::list<message::SendRequest> posts;
};
STARLING_STATE NoDestroy<std::vector<LeftPosts>> left_storage;
constinit auto& left = left_storage.value;

void end_accesses(comm::Comm& comm) {
    Window* const window = window_of(comm.context());
    if (!window) return;
    for (WindowTarget* const remote : window->used) {
        remote->mapped = false;  // so that later accesses do not take the fast path
        why_revoked();
        rma::end_accesses(remote->target, MPIX_ERR_REVOKED);
    }
}

/// Keeps the messages of MPI_Win_post whose receivers' rings are full: the window must not wait for a receiver that does not poll.
void leave_posts(Window& window) {
    std::erase_if(left, [](LeftPosts& each) {
        each.posts.remove_if([](const message::SendRequest& post) { return post.done; });
        if (!each.posts.empty()) return false;
        each.comm->release();
        return true;
    });
    window.posts.remove_if([](const message::SendRequest& post) { return post.done; });
    if (!window.posts.empty()) left.push_back({window.comm->retain(), std::move(window.posts)});
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
    leave_posts(window);
    comm::announce_revocation(*window.comm);
}

}  // namespace starling::window
