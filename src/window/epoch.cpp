#include "window/epoch.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "link/job.h"
#include "message/point_to_point.h"
#include "progress/engine.h"
#include "window/lock.h"
#include "window/revocation.h"

namespace starling::window {

STARLING_STATE uint32_t idle_flushes = 0;

namespace {

/// Tags of the messages that notify of MPI_Win_post and MPI_Win_complete, on the window's communicator.
constexpr int kPosted = 1, kCompleted = 2;

const char* name_of(Epoch epoch) {
    switch (epoch) {
        case Epoch::fence:
            return "an epoch of MPI_Win_fence";
        case Epoch::started:
            return "an epoch of MPI_Win_start";
        case Epoch::locks:
            return "an epoch of MPI_Win_lock";
        case Epoch::lock_all:
            return "an epoch of MPI_Win_lock_all";
        default:
            return "no epoch";
    }
}

/// Returns whether a new epoch may begin. A fence epoch without accesses ends by itself.
bool is_free(const Window& window) {
    return window.epoch == Epoch::none || (window.epoch == Epoch::fence && !window.fence_used);
}

int not_now(const Window& window) {
    return fail(MPI_ERR_RMA_SYNC, "the window is in %s; end that epoch first", name_of(window.epoch));
}

int ends(const Window& window, Epoch epoch) {
    return fail(MPI_ERR_RMA_SYNC, "the window is in %s, but this call ends %s; begin and end an epoch with matching functions",
                name_of(window.epoch), name_of(epoch));
}

int flush_one(WindowTarget& remote) {
    rma::Target& target = remote.target;
    rma::flush(target);
    if (target.open)
        rma::wait_until_complete(target);
    else if (++idle_flushes % kFlushesPerLook == 0)
        progress::test();
    return target.fetch_error();
}

/// Messages of MPI_Win_post that were not sent when their window was freed. The reference to the communicator keeps their receivers.
struct LeftPosts {
    comm::Comm* comm;
    std::list<message::SendRequest> posts;
};
STARLING_STATE NoDestroy<std::vector<LeftPosts>> left_storage;
constinit auto& left = left_storage.value;

std::vector<int> ranks_of(const Window& window, const comm::Group& group) {
    std::vector<int> ranks;
    for (int i = 0; i < group.size(); ++i) {
        const int rank = window.comm->local_group().rank_of(group.at(i));
        if (rank != MPI_UNDEFINED) ranks.push_back(rank);
    }
    return ranks;
}

int not_in_window() { return fail(MPI_ERR_GROUP, "the group has members that are not in the group of the window"); }

/// Sends an empty message to each rank.
void notify_ranks(Window& window, std::list<message::SendRequest>& requests, const std::vector<int>& ranks, int tag) {
    for (const int rank : ranks)
        message::start_send(requests.emplace_back(), window.comm->point_to_point, nullptr, 0, collective::byte_type(), rank,
                            tag, message::SendMode::standard);
}

/// Waits for all sends. Returns the first error.
int wait_for_sends(std::list<message::SendRequest>& sends) {
    int first = MPI_SUCCESS;
    for (message::SendRequest& send : sends) {
        progress::wait(send);
        if (const int error = progress::error_of(send); error && !first) first = error;
    }
    sends.clear();
    return first;
}

using Receives = std::list<message::ReceiveRequest>;

Receives::iterator find_failed(Receives& receives) {
    return std::find_if(receives.begin(), receives.end(), [](const auto& one) { return one.done && one.outcome.error; });
}

bool all_done(const Receives& receives) {
    return std::all_of(receives.begin(), receives.end(), [](const auto& one) { return one.done; });
}

/// Waits for a message from each rank, but not after an error: the others may wait as well, for the rank that has failed. Returns the error.
/// Then the other receives stay in `window.late`, so that messages of this epoch do not match a receive of a later one.
int wait_for_messages(Window& window, Receives& receives) {
    progress::wait_until([&] { return all_done(receives) || find_failed(receives) != receives.end(); });
    const auto failed = find_failed(receives);
    const int error = failed == receives.end() ? MPI_SUCCESS : progress::error_of(*failed);
    receives.remove_if([](const message::ReceiveRequest& one) { return one.done; });
    window.late.splice(window.late.end(), receives);
    return error;
}

void listen(Window& window, message::ReceiveRequest& request, int rank, int tag) {
    message::start_receive(request, window.comm->point_to_point, nullptr, 0, collective::byte_type(), rank, tag);
}

/// Returns MPI_ERR_PROC_ABORTED if a member has died, which explains why a call failed; else MPI_SUCCESS. Members that noticed the death
/// early are in another call than those that notice it later, and may have freed the window.
int death_of_a_member(const Window& window) {
    for (int rank = 0; rank < window.size(); ++rank)
        if (link::has_ended(window.comm->local_group().at(rank)))
            return fail(MPI_ERR_PROC_ABORTED, "rank %d of the window has ended", rank);
    return MPI_SUCCESS;
}

/// Translates the error of a collective call in which members have called different functions.
int with_all(const Window& window, int error) {
    if (error != MPI_ERR_OTHER && error != MPI_ERR_TRUNCATE) return error;
    if (const int death = death_of_a_member(window)) return death;
    return fail(MPI_ERR_RMA_SYNC,
                "the window's processes have called different functions: some MPI_Win_free, others MPI_Win_fence");
}

}  // namespace

int barrier(Window& window) {
    collective::CommCall call(*window.comm, true);
    return with_all(window, collective::run(call, collective::barrier(call)));
}

// Waits for all members in MPI_Win_free. It uses another collective operation than barrier(), so that a member in MPI_Win_fence gets an
// error and does not use a freed window.
int last_barrier(Window& window) {
    collective::CommCall call(*window.comm, true);
    const int32_t mine = 1;
    int32_t all = 0;
    return with_all(window, collective::run(call, collective::allreduce(call, &mine, &all, 1, datatype::predefined(MPI_INT32_T),
                                                                        datatype::predefined(MPI_BAND))));
}

int begin_access(Window& window, WindowTarget& remote) {
    switch (window.epoch) {
        case Epoch::fence:
            window.fence_used = true;
            return MPI_SUCCESS;
        case Epoch::lock_all:
            if (remote.held != LockHeld::no) return MPI_SUCCESS;
            return acquire_lock(window, remote, window.unchecked ? LockHeld::unchecked : LockHeld::shared);
        case Epoch::locks:
            if (remote.held != LockHeld::no) return MPI_SUCCESS;
            return fail(MPI_ERR_RMA_SYNC, "rank %d of the window is not locked; call MPI_Win_lock or MPI_Win_lock_all first",
                        remote.rank);
        case Epoch::started:
            if (remote.in_group) return MPI_SUCCESS;
            return fail(MPI_ERR_RMA_SYNC, "rank %d of the window is not in the group of MPI_Win_start", remote.rank);
        default:
            return fail(MPI_ERR_RMA_SYNC,
                        "no epoch is open: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all");
    }
}

int fence(Window& window, int assertion) {
    if (window.epoch != Epoch::none && window.epoch != Epoch::fence) return not_now(window);
    int error = flush_all(window);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const int failed = barrier(window);
    if (!error || failed == MPI_ERR_PROC_ABORTED) error = failed;
    if (error && error != MPI_ERR_PROC_ABORTED)
        if (const int death = death_of_a_member(window)) error = death;
    window.epoch = assertion & MPI_MODE_NOSUCCEED ? Epoch::none : Epoch::fence;
    window.fence_used = false;
    return error;
}

int start(Window& window, const comm::Group& group, int assertion) {
    if (is_revoked(window)) return why_revoked();
    if (!is_free(window)) return not_now(window);
    const std::vector<int> ranks = ranks_of(window, group);
    if (static_cast<int>(ranks.size()) != group.size()) return not_in_window();
    for (const int rank : ranks) {
        WindowTarget& r = get_or_create_target(window, rank);
        r.in_group = true;
        window.group.push_back(&r);
    }
    window.epoch = Epoch::started;
    if (assertion & MPI_MODE_NOCHECK) return MPI_SUCCESS;
    Receives posts;
    for (const int rank : ranks) listen(window, posts.emplace_back(), rank, kPosted);
    return wait_for_messages(window, posts);
}

int complete(Window& window) {
    if (window.epoch != Epoch::started) return ends(window, Epoch::started);
    int error = MPI_SUCCESS;
    std::vector<int> ranks;
    for (WindowTarget* r : window.group) {
        if (const int failed = flush_one(*r); failed && !error) error = failed;
        r->in_group = false;
        ranks.push_back(r->rank);
    }
    window.group.clear();
    window.epoch = Epoch::none;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::list<message::SendRequest> completed;
    notify_ranks(window, completed, ranks, kCompleted);
    const int failed = wait_for_sends(completed);
    return error ? error : failed;
}

int post(Window& window, const comm::Group& group, int assertion) {
    if (is_revoked(window)) return why_revoked();
    if (window.exposed) return fail(MPI_ERR_RMA_SYNC, "the window is posted already: call MPI_Win_wait first");
    const std::vector<int> ranks = ranks_of(window, group);
    if (static_cast<int>(ranks.size()) != group.size()) return not_in_window();
    window.exposed = true;
    for (const int rank : ranks) listen(window, window.completions.emplace_back(), rank, kCompleted);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!(assertion & MPI_MODE_NOCHECK)) notify_ranks(window, window.posts, ranks, kPosted);
    return MPI_SUCCESS;
}

int wait(Window& window, bool* flag) {
    if (!window.exposed) return fail(MPI_ERR_RMA_SYNC, "the window is not posted: call MPI_Win_post first");
    if (flag) {
        progress::test();
        *flag = all_done(window.completions) || find_failed(window.completions) != window.completions.end();
        if (!*flag) return MPI_SUCCESS;
    }
    int error = wait_for_messages(window, window.completions);
    // A member that has sent its completion has received its post. If one has failed, the others may not take theirs.
    if (!error) error = wait_for_sends(window.posts);
    window.exposed = false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return error;
}

int lock(Window& window, LockHeld kind, int rank, int assertion) {
    if (is_revoked(window)) return why_revoked();
    if (window.epoch != Epoch::locks && !is_free(window)) return not_now(window);
    WindowTarget& target = get_or_create_target(window, rank);
    if (target.held != LockHeld::no || target.asking)
        return fail(MPI_ERR_RMA_SYNC, "rank %d of the window is locked already: call MPI_Win_unlock first", rank);
    if (const int error = acquire_lock(window, target, assertion & MPI_MODE_NOCHECK ? LockHeld::unchecked : kind)) return error;
    if (is_revoked(window)) {
        release_lock(window, target);
        return why_revoked();
    }
    window.epoch = Epoch::locks;
    ++window.locked;
    return MPI_SUCCESS;
}

int unlock(Window& window, int rank) {
    WindowTarget& target = get_or_create_target(window, rank);
    if (window.epoch != Epoch::locks || target.held == LockHeld::no)
        return fail(MPI_ERR_RMA_SYNC, "rank %d of the window is not locked by MPI_Win_lock", rank);
    const int error = flush_one(target);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    release_lock(window, target);
    if (--window.locked == 0) window.epoch = Epoch::none;
    return error;
}

int lock_all(Window& window, int assertion) {
    if (is_revoked(window)) return why_revoked();
    if (!is_free(window)) return not_now(window);
    window.epoch = Epoch::lock_all;
    window.unchecked = assertion & MPI_MODE_NOCHECK;
    // Loads and stores of mapped memory are accesses too (section 12.5.3), without any call, so these locks are acquired now. Locks of
    // processes on other hosts are acquired at the first access.
    if (!window.unchecked) acquire_whole_table(window);
    if (!is_revoked(window)) return MPI_SUCCESS;
    release_all_locks(window);
    window.epoch = Epoch::none;
    return why_revoked();
}

int unlock_all(Window& window) {
    if (window.epoch != Epoch::lock_all) return ends(window, Epoch::lock_all);
    const int error = flush_all(window);
    release_all_locks(window);
    window.epoch = Epoch::none;
    return error;
}

int flush(Window& window, int rank) {
    WindowTarget& target = get_or_create_target(window, rank);
    const bool locked = window.epoch == Epoch::lock_all || (window.epoch == Epoch::locks && target.held != LockHeld::no);
    if (!locked)
        return fail(MPI_ERR_RMA_SYNC, "rank %d of the window is not locked; call MPI_Win_lock or MPI_Win_lock_all first", rank);
    return flush_one(target);
}

int flush_all(Window& window) {
    int first = MPI_SUCCESS;
    // The loop uses an index, because another thread may append targets to `used` meanwhile.
    for (size_t i = 0; i < window.used.size(); ++i)
        if (const int error = flush_one(*window.used[i]); error && !first) first = error;
    return first;
}

void sync(Window&) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    progress::test();
}

void leave_epochs(Window& window) {
    for (message::ReceiveRequest& one : window.late)
        if (!one.done && !message::cancel_receive(one)) progress::wait(one);
    window.late.clear();
    // Messages whose receivers' rings are full are kept: the window must not wait for a receiver that does not poll.
    std::erase_if(left, [](LeftPosts& each) {
        each.posts.remove_if([](const message::SendRequest& post) { return post.done; });
        if (!each.posts.empty()) return false;
        each.comm->release();
        return true;
    });
    window.posts.remove_if([](const message::SendRequest& post) { return post.done; });
    if (!window.posts.empty()) left.push_back({window.comm->retain(), std::move(window.posts)});
}

int check_idle(const Window& window) {
    if (!is_free(window)) return not_now(window);
    return window.exposed ? fail(MPI_ERR_RMA_SYNC, "the window is posted: call MPI_Win_wait first") : MPI_SUCCESS;
}

}  // namespace starling::window
