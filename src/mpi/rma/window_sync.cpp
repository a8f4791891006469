// Synchronization of windows (MPI 5.0 section 12.5).
#include "base/clock.h"
#include "base/error.h"
#include "mpi/rma/window.h"
#include "mpi/rma/window_check.h"
#include "mpi/tool/tool_events.h"
#include "window/epoch.h"
#include "window/mapped_access.h"
#include "window/revocation.h"

namespace starling::mpi {

namespace {

using comm::Group;
using window::LockHeld;

constexpr int kFence = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int kPost = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

int check_assertion(int assertion, int allowed) {
    if ((assertion & ~allowed) == 0) return MPI_SUCCESS;
    return fail(MPI_ERR_ASSERT, "the assertion %d has bits that this function does not allow; 0 is always valid", assertion);
}

/// Runs a synchronization call with an `assert` argument, of which the bits in `allowed` are valid; `body` returns an error class.
template <class F>
int synchronise(MPI_Win win, int assertion, int allowed, F&& body) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    int error = check_assertion(assertion, allowed);
    if (!error) error = body(*w);
    if (window::is_revoked(*w)) error = window::why_revoked();
    return raise(*w, error);
}

/// Runs a synchronization call with a target rank; does nothing for MPI_PROC_NULL.
template <class F>
int synchronise_with(MPI_Win win, int rank, int assertion, F&& body) {
    return synchronise(win, assertion, MPI_MODE_NOCHECK, [&](Window& w) {
        if (const int error = check_rank(w, rank)) return error;
        return rank == MPI_PROC_NULL ? MPI_SUCCESS : body(w);
    });
}

template <class F>
int synchronise_with(MPI_Win win, MPI_Group group, int assertion, F&& body) {
    return synchronise(win, assertion, kPost, [&](Window& w) {
        Group* g = comm::from_handle(group);
        if (!g) return fail(MPI_ERR_GROUP, "the group is null or not valid; was it freed?");
        const comm::ReferenceGuard kept(g);
        return body(w, *g);
    });
}

[[gnu::noinline]] int flush_far(Window& w, int rank) {
    int error = check_rank(w, rank);
    if (!error && rank != MPI_PROC_NULL) error = window::flush(w, rank);
    if (window::is_revoked(w)) error = window::why_revoked();
    return raise(w, error);
}

int acquire_lock(Window& w, LockHeld kind, int rank, int assertion) {
    const uint64_t begin = tools_listen() ? now_ns() : 0;
    const int error = window::lock(w, kind, rank, assertion);
    if (!error && tools_listen() && begin)
        notify_tools(ToolEvent::window_locked,
                     {w.comm->context(), static_cast<uint64_t>(rank), kind == LockHeld::exclusive, now_ns() - begin});
    return error;
}

int flush_all(Window& w) {
    if (w.epoch != window::Epoch::locks && w.epoch != window::Epoch::lock_all)
        return fail(MPI_ERR_RMA_SYNC, "no rank of the window is locked; call MPI_Win_lock or MPI_Win_lock_all first");
    return window::flush_all(w);
}

}  // namespace

int Win_fence(int assertion, MPI_Win win) {
    return synchronise(win, assertion, kFence, [=](Window& w) { return window::fence(w, assertion); });
}

int Win_start(MPI_Group group, int assertion, MPI_Win win) {
    return synchronise_with(win, group, assertion, [=](Window& w, Group& g) { return window::start(w, g, assertion); });
}

int Win_complete(MPI_Win win) { return synchronise(win, 0, 0, window::complete); }

int Win_post(MPI_Group group, int assertion, MPI_Win win) {
    return synchronise_with(win, group, assertion, [=](Window& w, Group& g) { return window::post(w, g, assertion); });
}

int Win_wait(MPI_Win win) {
    return synchronise(win, 0, 0, [](Window& w) { return window::wait(w, nullptr); });
}

int Win_test(MPI_Win win, int* flag) {
    return synchronise(win, 0, 0, [=](Window& w) {
        if (!flag) return null_pointer("flag");
        bool over = false;
        const int error = window::wait(w, &over);
        *flag = over;
        return error;
    });
}

int Win_lock(int lock_type, int rank, int assertion, MPI_Win win) {
    return synchronise_with(win, rank, assertion, [=](Window& w) {
        if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
            return fail(MPI_ERR_LOCKTYPE, "%d is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED", lock_type);
        return acquire_lock(w, lock_type == MPI_LOCK_EXCLUSIVE ? LockHeld::exclusive : LockHeld::shared, rank, assertion);
    });
}

int Win_unlock(int rank, MPI_Win win) {
    return synchronise_with(win, rank, 0, [=](Window& w) { return window::unlock(w, rank); });
}

int Win_lock_all(int assertion, MPI_Win win) {
    return synchronise(win, assertion, MPI_MODE_NOCHECK, [=](Window& w) { return window::lock_all(w, assertion); });
}

int Win_unlock_all(MPI_Win win) { return synchronise(win, 0, 0, window::unlock_all); }

int Win_flush(int rank, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && window::flush_mapped(*window, rank)) [[likely]]
        return MPI_SUCCESS;
    return window ? flush_far(*window, rank) : bad_win(win);
}

int Win_flush_local(int rank, MPI_Win win) { return Win_flush(rank, win); }

int Win_flush_all(MPI_Win win) { return synchronise(win, 0, 0, flush_all); }

int Win_flush_local_all(MPI_Win win) { return Win_flush_all(win); }

int Win_sync(MPI_Win win) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    window::sync(*w);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
