#include "window/lock.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/host_memory.h"
#include "link/job.h"
#include "link/remote_peer.h"
#include "progress/engine.h"
#include "progress/wait_report.h"
#include "transport/packet.h"
#include "window/revocation.h"

namespace starling::window {

namespace {

enum class LockMessageKind : uint32_t {
    request_shared = 1,
    request_exclusive,
    grant,
    release,
    later,  ///< reply: the window is not created at the target yet, and no more requests are kept; the requester must ask again
    never,  ///< reply: the window does not exist at the target, because its creation has failed there
};

/// A message about one lock request. Each request has a new number, which its answers and the release repeat.
struct LockMessage {
    uint64_t context;  ///< context id of the window's communicator
    uint32_t number;
    LockMessageKind what;
};
static_assert(sizeof(LockMessage) <= link::PendingControl::kMost);

/// A lock request for a window that is not created here yet. Holds the job of its sender, so that the peer still exists when the window
/// does.
struct OutOfOrderLockMessage {
    link::JobHold hold;
    link::Process process;
    LockMessage message;
};
/// Limit of the requests kept per process; a process with more must ask again. So a faulty process cannot fill the memory.
constexpr ptrdiff_t kMostEarly = 8;
STARLING_STATE NoDestroy<std::vector<std::unique_ptr<OutOfOrderLockMessage>>> early_storage;
constinit auto& early = early_storage.value;
STARLING_STATE uint32_t making = 0;  ///< creations of windows in progress, one per thread

void send(link::Peer& peer, const LockMessage& message) {
    link::send_control(peer, packet::PacketKind::window_lock, &message, sizeof message);
}

void send_lock_message(const Window& window, link::Peer& peer, LockMessageKind what, uint32_t number) {
    send(peer, {window.comm->context(), number, what});
}

void request_remote(const Window& window, const WindowTarget& remote) {
    send_lock_message(window, *remote.target.peer,
                      remote.requests_exclusive ? LockMessageKind::request_exclusive : LockMessageKind::request_shared,
                      remote.asked);
}

uint32_t place(const Window& window) { return static_cast<uint32_t>(window.my_place); }

void ring_neighbour(const Window& window, uint32_t who) {
    if (who == place(window)) return progress::notify();
    const link::Process process = window.comm->local_group().at(window.neighbours[who]);
    job::ring(link::SegmentRegion(process.job->segment().region(process.rank)).doorbell());
}

/// Rings the doorbells of the processes that wait for a lock of that target, so that they try again.
void ring_waiters(Window& window, uint32_t target) {
    window.board.each_waiter(target, [&window](uint32_t who) { ring_neighbour(window, who); });
}

bool has_died(const link::Process& process) {
    const link::Peer* peer = process.job->find_peer(process.rank);
    return peer && peer->dead;
}

bool has_died(const Window& window, int rank) { return has_died(window.comm->local_group().at(rank)); }

bool bury_neighbours(Window& window, uint32_t target) {
    return window.board.bury_holders(target, [&window](uint32_t who) { return has_died(window, window.neighbours[who]); });
}

/// Makes neighbours ring this process's doorbell when they release a lock of its memory, if requests are pending, and stops that if none
/// are. Returns true if they ring from now on: an earlier release did not ring, so the caller must try once more.
bool await_ring(Window& window) {
    const bool awaits = window.desk.has_pending();
    if (awaits == window.awaits_ring) return false;
    window.awaits_ring = awaits;
    window.board.set_pending(place(window), awaits);
    awaits ? progress::await_ring() : progress::await_no_ring();
    return awaits;
}

bool serve_pending(Window& window) {
    RemoteLockServer& desk = window.desk;
    bool released = false;
    bool any = desk.drop([&window](int rank) { return has_died(window, rank); }, released);
    if (released) ring_waiters(window, place(window));
    do {
        RemoteLockServer::Claimant served{};
        const uint64_t now = desk.has_pending() ? now_ns() : 0;
        while (desk.serve(served, now) ||
               (desk.has_pending() && bury_neighbours(window, place(window)) && desk.serve(served, now))) {
            send_lock_message(window, *get_or_create_target(window, served.rank).target.peer, LockMessageKind::grant,
                              served.number);
            any = true;
        }
    } while (await_ring(window));
    return any;
}

bool poll_locks() {
    bool any = false;
    for (Window* window : windows())
        if (!window->desk.idle()) any |= serve_pending(*window);
    return any;
}

/// Returns the sender as a target of the window; null if it is not a member on another host. Only the path identifies the sender, not the
/// packet.
WindowTarget* sender(Window& window, const link::Process& process) {
    const int rank = window.comm->local_group().rank_of(process);
    if (rank == MPI_UNDEFINED) return nullptr;
    WindowTarget& from = get_or_create_target(window, rank);
    return from.local < 0 && from.target.peer ? &from : nullptr;
}

/// Returns whether a thread waits for the answer to this request.
bool is_awaited(const WindowTarget& remote, uint32_t number) { return remote.asking && remote.asked == number; }
/// Returns whether this process has the lock of this request, so that its grant is a duplicate.
bool is_held(const WindowTarget& remote, uint32_t number) { return remote.held != LockHeld::no && remote.asked == number; }

void handle_message(Window& window, const link::Process& process, const LockMessage& message) {
    WindowTarget* const from = sender(window, process);
    if (!from) return;
    switch (message.what) {
        case LockMessageKind::request_shared:
        case LockMessageKind::request_exclusive:
            if (window.desk.add_request(
                    {from->rank, message.number, message.what == LockMessageKind::request_exclusive, now_ns()}))
                serve_pending(window);
            return;
        case LockMessageKind::grant:
            if (is_awaited(*from, message.number))
                from->granted = true;
            else if (!is_held(*from, message.number))  // the request was abandoned because of a revocation
                send_lock_message(window, *from->target.peer, LockMessageKind::release, message.number);
            return;
        case LockMessageKind::later:
            if (is_awaited(*from, message.number)) request_remote(window, *from);
            return;
        case LockMessageKind::never:
            if (is_awaited(*from, message.number)) from->refused = true;
            return;
        case LockMessageKind::release:
            if (!window.desk.release(from->rank, message.number)) return;
            ring_waiters(window, place(window));
            serve_pending(window);
            return;
    }
}

void answer(link::Peer& peer, const LockMessage& ask, LockMessageKind what) { send(peer, {ask.context, ask.number, what}); }

/// Keeps a request for an unknown window. A process has a window only after all members have reached the end of its creation. So if no
/// window is being created here, the creation of this one has failed here, by a death that the sender did not notice.
void store_early(link::Peer& peer, const LockMessage& message) {
    // A grant for a request that was abandoned with a revoked window, which has been freed here.
    if (message.what == LockMessageKind::grant) return answer(peer, message, LockMessageKind::release);
    if (message.what != LockMessageKind::request_shared && message.what != LockMessageKind::request_exclusive) return;
    if (making == 0) return answer(peer, message, LockMessageKind::never);
    const link::Process process{&peer.job, peer.rank};
    std::erase_if(early, [](const auto& e) { return has_died(e->process); });
    const auto same = std::count_if(early.begin(), early.end(), [&](const auto& e) { return e->process == process; });
    if (same < kMostEarly) {
        early.push_back(
            std::make_unique<OutOfOrderLockMessage>(OutOfOrderLockMessage{link::JobHold(process.job), process, message}));
        return;
    }
    answer(peer, message, LockMessageKind::later);
}

/// Refuses the kept requests, whose windows were not created.
void refuse_early() {
    for (const auto& each : early) {
        link::Peer* peer = each->process.job->find_peer(each->process.rank);
        if (peer && !peer->dead) answer(*peer, each->message, LockMessageKind::never);
    }
    early.clear();
}

void on_lock_packet(link::Peer& peer, const link::Packet& packet) {
    LockMessage message;
    if (packet.header.bytes != sizeof message) return;
    std::memcpy(&message, packet.payload, sizeof message);
    if (Window* window = window_of(message.context)) return handle_message(*window, {&peer.job, peer.rank}, message);
    store_early(peer, message);
}

int gone(const WindowTarget& remote) {
    if (remote.refused)
        return fail(MPI_ERR_PROC_ABORTED,
                    "rank %d does not have this window: the creation failed on that rank because a "
                    "process died",
                    remote.rank);
    if (remote.target.peer && remote.target.peer->dead) return link::why_dead(*remote.target.peer, remote.rank);
    return fail(MPI_ERR_PROC_ABORTED, "rank %d of the window has ended", remote.rank);
}

constexpr progress::WaitSite kForAnother{};  // wait site: waits for another thread of this process that is acquiring the lock
/// Wait site: waits, at the end of a window, for other processes to release their locks or to leave the lock table.
constexpr progress::WaitSite kForGivenBack{};

/// The argument of a wait for a lock of one target.
struct LockWait {
    const Window& window;
    const WindowTarget& target;
};

/// Reports a wait for a lock. The lock table names the holder if it is on this host; otherwise it may be any rank.
void report_lock(const void* argument, progress::WaitReporter& teller) {
    const auto& [window, target] = *static_cast<const LockWait*>(argument);
    WaitReportPage::OperationEntry lock{};
    lock.kind = WaitReportPage::OperationKind::lock;
    lock.context = window.comm->context();
    const int holder = target.local >= 0 ? window.board.holder(static_cast<uint32_t>(target.local)) : -1;
    lock.rank = WaitReportPage::kAnyRank;
    if (holder >= 0 && window.neighbours[static_cast<size_t>(holder)] != window.comm->rank) {
        lock.rank = window.neighbours[static_cast<size_t>(holder)];
        const link::Process process = window.comm->local_group().at(lock.rank);
        lock.peer = process.rank;
        lock.peer_job = process.job->address().id;
    }
    teller.waits_for(lock, nullptr);
}
constexpr progress::WaitSite kForLock{nullptr, progress::Expected::soon, report_lock};

template <class F>
struct LockCondition : LockWait {
    F condition;
    bool operator()() { return condition(); }
};
/// Waits for a lock of `target`, until `condition` holds.
template <class F>
void wait_for_lock(const Window& window, const WindowTarget& target, F condition) {
    LockCondition<F> until{{window, target}, condition};
    progress::wait_until([](void* u) { return (*static_cast<LockCondition<F>*>(u))(); }, &until, kForLock);
}

int acquire_remote(Window& window, WindowTarget& remote, LockHeld kind) {
    ++counters.locks_waited;
    link::Peer& peer = *remote.target.peer;
    remote.granted = remote.refused = false;
    remote.requests_exclusive = kind == LockHeld::exclusive;
    ++remote.asked;
    request_remote(window, remote);
    wait_for_lock(window, remote,
                  [&] { return remote.granted || remote.refused || link::has_finalized_for_good(peer) || is_revoked(window); });
    if (remote.granted) return MPI_SUCCESS;
    return is_revoked(window) ? why_revoked() : gone(remote);
}

/// Serves the pending lock requests of other hosts after a release by this process. This process may compute from now on without polling,
/// while the thread that serves other hosts sleeps.
void serve_waiting_requests(Window& window) {
    if (window.desk.has_pending()) serve_pending(window);
}

void release_on_board(Window& window, uint32_t target, LockHeld held) {
    if (held == LockHeld::exclusive)
        window.board.release_exclusive(target);
    else
        window.board.release_shared(place(window), target);
    delay_at("lock given back");
    ring_waiters(window, target);
    if (target == place(window)) serve_waiting_requests(window);
}

int acquire_in_table(Window& window, WindowTarget& remote, LockHeld kind) {
    const uint32_t me = place(window), target = static_cast<uint32_t>(remote.local);
    const auto had = [&] {
        return kind == LockHeld::exclusive ? window.board.try_exclusive(LockTable::holder_here(me), target)
                                           : window.board.try_shared(me, target);
    };
    if (had()) return MPI_SUCCESS;
    ++counters.locks_waited;
    // If several threads wait for locks of different targets, releases of locks of all targets wake this process.
    window.board.begin_wait(me, window.waiters++ == 0 ? target : LockTable::kEveryTarget);
    bool taken = false;
    wait_for_lock(window, remote, [&] {
        taken = had() || (bury_neighbours(window, target) && had());
        return taken || remote.target.peer->dead || is_revoked(window);
    });
    if (--window.waiters == 0) window.board.end_wait(me);
    if (!taken && is_revoked(window)) {
        if (kind == LockHeld::exclusive) window.board.withdraw_exclusive(LockTable::holder_here(me), target);
        ring_waiters(window, target);
        return why_revoked();
    }
    // The lock counts only if the target is alive. A process that noticed the target's death first may have released the target's locks, so
    // that this process acquired one.
    if (taken && !link::has_ended(window.comm->local_group().at(remote.rank))) return MPI_SUCCESS;
    if (taken) release_on_board(window, target, kind);
    return gone(remote);
}

int acquire_unless_held(Window& window, WindowTarget& remote, LockHeld kind) {
    // Another thread may be acquiring the same lock: two threads share one lock of a target by MPI_Win_lock_all.
    if (remote.asking) progress::wait_until([&] { return !remote.asking; }, kForAnother);
    if (remote.held != LockHeld::no) return MPI_SUCCESS;
    remote.asking = true;
    const int error = remote.local >= 0 ? acquire_in_table(window, remote, kind) : acquire_remote(window, remote, kind);
    if (!error) remote.held = kind;
    delay_at("lock taken");
    counters.locks += !error;
    remote.asking = false;
    progress::notify();
    return error;
}

}  // namespace

int acquire_lock(Window& window, WindowTarget& remote, LockHeld kind) {
    if (is_revoked(window)) return why_revoked();
    if (!remote.target.peer) return MPI_ERR_PROC_ABORTED;
    if (remote.target.peer->dead) return gone(remote);
    const bool had = window.on_board && remote.local >= 0;
    if (kind != LockHeld::unchecked && !had) return acquire_unless_held(window, remote, kind);
    remote.held = kind;
    return MPI_SUCCESS;
}

void release_lock(Window& window, WindowTarget& remote) {
    const LockHeld held = remote.held;
    remote.held = LockHeld::no;
    if (held == LockHeld::unchecked || held == LockHeld::no) return;
    if (remote.local < 0) return send_lock_message(window, *remote.target.peer, LockMessageKind::release, remote.asked);
    release_on_board(window, static_cast<uint32_t>(remote.local), held);
}

void acquire_whole_table(Window& window) {
    for (uint32_t target = 0; target < window.neighbours.size(); ++target) {
        const int rank = window.neighbours[target];
        if (!window.board.try_shared(place(window), target)) {
            acquire_lock(window, get_or_create_target(window, rank), LockHeld::shared);
        } else {
            ++counters.locks;
            if (WindowTarget* met = window.remotes.find(rank)) met->held = LockHeld::shared;
        }
    }
    window.on_board = true;
}

void release_all_locks(Window& window) {
    for (WindowTarget* remote : window.used)
        if (remote->local < 0 || !window.on_board)
            release_lock(window, *remote);
        else
            remote->held = LockHeld::no;
    if (!window.on_board) return;
    window.board.release_all_shared(place(window), [&window](uint32_t who) { ring_neighbour(window, who); });
    window.on_board = false;
    serve_waiting_requests(window);
}

bool leave_board(Window& window, bool all_have_come) {
    if (window.neighbours.empty()) return false;
    if (all_have_come && window.size() > static_cast<int>(window.neighbours.size()))
        progress::wait_until([&] { return window.desk.idle() || is_revoked(window); }, kForGivenBack);
    if (window.my_place != 0) {
        window.board.leave(place(window));
        ring_neighbour(window, 0);
        return false;
    }
    bool all = all_have_come;
    for (uint32_t who = 1; all && who < window.neighbours.size(); ++who) {
        const link::Process process = window.comm->local_group().at(window.neighbours[who]);
        progress::wait_until([&] { return window.board.has_left(who) || link::has_ended(process) || is_revoked(window); },
                             kForGivenBack);
        all &= window.board.has_left(who);
    }
    return all;
}

void listen_for_locks() {
    if (link::accepts_packets(packet::PacketKind::window_lock)) return;
    link::register_handler(packet::PacketKind::window_lock, on_lock_packet);
    progress::add_poller(poll_locks);
}

Making::Making() { ++making; }

Making::~Making() {
    if (--making == 0) refuse_early();
}

void handle_stored_messages(Window& window) {
    const uint64_t context = window.comm->context();
    const auto mine =
        std::stable_partition(early.begin(), early.end(), [context](const auto& e) { return e->message.context != context; });
    for (auto each = mine; each != early.end(); ++each) handle_message(window, (*each)->process, (*each)->message);
    early.erase(mine, early.end());
}

}  // namespace starling::window
