#include "base/lock.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/membarrier.h"
#include "base/state.h"

namespace starling {

STARLING_STATE std::atomic<Threads> threads_are{Threads::one};
constinit thread_local const char* calling = nullptr;

namespace {

STARLING_STATE std::atomic<int> locked{0};
STARLING_STATE std::atomic<int> waiters{0};   ///< threads that want the lock, asleep or not
STARLING_STATE std::atomic<int> sleepers{0};  ///< threads in a futex wait on `locked`
STARLING_STATE std::atomic<int> starving{0};  ///< threads that have waited for long: the others no longer overtake them
STARLING_STATE std::atomic<const void*> owner{nullptr};   ///< the thread that holds the lock
STARLING_STATE std::atomic<const void*> inside{nullptr};  ///< Threads::in_turn: the thread inside the library, without the lock

/// Returns an identity of the calling thread, without a system call.
const void* this_thread() { return __builtin_thread_pointer(); }

bool owned() { return owner.load(std::memory_order_relaxed) == this_thread(); }
bool marked() { return inside.load(std::memory_order_relaxed) == this_thread(); }

/// Time after which a waiting thread counts as starving, ns; the others then no longer overtake it. Without this limit, a thread that
/// unlocks and locks again at once always finds the lock free, and a sleeper that must first be woken never does. A shorter time would cost
/// more, because the lock would be passed on by a wake at every turn.
constexpr uint64_t kHungryNs = 200'000;

/// Returns whether a thread can execute a barrier in all other threads of this process, so that the others can omit theirs. The first call
/// is made while there is one thread, when registration costs nothing.
STARLING_STATE bool barrier_checked = false, barrier_available = false;
bool has_barrier() {
    if (!barrier_checked) {
        barrier_available = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
        barrier_checked = true;
    }
    return barrier_available;
}

bool try_lock() {
    int free = 0;
    return locked.load(std::memory_order_relaxed) == 0 && locked.compare_exchange_strong(free, 1, std::memory_order_acquire);
}

// Waking a thread on another core can cost as much as a hundred polls, so a waiter yields for a while before it sleeps.
void lock_slowly() {
    waiters.fetch_add(1);
    bool is_starving = false;
    uint64_t since = 0;
    for (int turn = 0;; ++turn) {
        if ((is_starving || starving.load() == 0) && try_lock()) break;
        if (turn < 64) {
            _mm_pause();
            continue;
        }
        if (const uint64_t now = now_ns(); since == 0) {
            since = now;
        } else if (!is_starving && now - since > kHungryNs) {
            is_starving = true;
            starving.fetch_add(1);
        }
        if (turn < 512 || locked.load() == 0) {
            sched_yield();
        } else {
            sleepers.fetch_add(1);
            // After this barrier every unlock() sees `sleepers > 0` and wakes us. An earlier unlock() has already cleared `locked`, so the
            // futex wait returns at once.
            if (barrier_available) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
            syscall(SYS_futex, &locked, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
            sleepers.fetch_sub(1);
        }
    }
    if (is_starving) starving.fetch_sub(1);
    waiters.fetch_sub(1);
}

void lock() {
    if (owned()) panic("a thread entered the library while it was already inside");
    if (starving.load(std::memory_order_relaxed) != 0 || !try_lock()) lock_slowly();
    owner.store(this_thread(), std::memory_order_relaxed);
}

void unlock() {
    owner.store(nullptr, std::memory_order_relaxed);
    // The store to `locked` must be ordered before the load of `sleepers`. A full barrier here would cost a tenth of a small message's
    // time, so the sleeper executes it for both sides where the kernel supports that.
    if (barrier_available) {
        locked.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        locked.store(0);
    }
    // If a thread is starving, wake all: a single wake might go to a thread that must not take the lock, and the starving one would sleep
    // on.
    if (sleepers.load() > 0)
        syscall(SYS_futex, &locked, FUTEX_WAKE_PRIVATE, starving.load() > 0 ? INT_MAX : 1, nullptr, nullptr, 0);
}

/// Raises `threads_are`, never lowers it: another thread may have raised it further since this one read it.
void allow(Threads wish) {
    Threads now = threads_are.load();
    while (now < wish && !threads_are.compare_exchange_weak(now, wish)) {}
}

/// Ends Threads::in_turn: when this returns, no thread is inside without the lock.
void end_turns(Threads wish) {
    delay_at("before turns are ended");
    lock();
    allow(wish);
    // After this barrier, a thread that has stored `inside` is visible to the loop below, and any later thread loads the new `threads_are`.
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    for (int turn = 0; inside.load(std::memory_order_acquire); ++turn) {
        if (turn < 1000)
            sched_yield();
        else
            usleep(100);
    }
    unlock();
}

}  // namespace

void allow_threads(Threads wish) {
    const Threads now = threads_are.load();
    const bool barrier = wish == Threads::one || has_barrier();
    if (wish == Threads::in_turn && !barrier) wish = Threads::at_once;
    if (wish <= now) return;
    if (now == Threads::in_turn)
        end_turns(wish);
    else
        allow(wish);
}

bool is_inside() { return threads_are.load(std::memory_order_relaxed) != Threads::one && (owned() || marked()); }

void enter_slowly() {
    if (threads_are.load(std::memory_order_relaxed) == Threads::in_turn) {
        inside.store(this_thread(), std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (threads_are.load(std::memory_order_acquire) == Threads::in_turn) return;
        inside.store(nullptr, std::memory_order_release);
    }
    lock();
}

void leave_slowly() {
    // If it neither owns the lock nor is marked as inside, this thread entered while there was only one thread.
    if (owned())
        unlock();
    else if (marked())
        inside.store(nullptr, std::memory_order_release);
}

void yield_lock() {
    if (!threads_at_once()) return;
    if (owned() && waiters.load(std::memory_order_relaxed) == 0) return;
    leave_slowly();
    for (int turn = 0; turn < 64 && waiters.load() > 0 && locked.load() == 0; ++turn) sched_yield();
    lock();
}

}  // namespace starling
