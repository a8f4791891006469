#include "progress/lock.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>

namespace starling::progress {

bool multi_threaded = false;

namespace {

std::atomic<int> locked{0};
std::atomic<int> waiters{0};   ///< threads that want the lock, asleep or not
std::atomic<int> sleepers{0};  ///< those in futex wait on `locked`
std::atomic<const void*> owner{nullptr};
int depth = 0;  ///< owner's

// The address of a thread-local names the thread without a system call.
const void* this_thread() {
    static thread_local char name;
    return &name;
}

bool try_lock() {
    int free = 0;
    return locked.load(std::memory_order_relaxed) == 0 &&
           locked.compare_exchange_strong(free, 1, std::memory_order_acquire);
}

// Waking another core can cost as much as a hundred polls, so a waiter yields for a while before it sleeps.
void lock_slowly() {
    waiters.fetch_add(1);
    for (int turn = 0; !try_lock(); ++turn) {
        if (turn < 64) {
            _mm_pause();
        } else if (turn < 512) {
            sched_yield();
        } else {
            sleepers.fetch_add(1);
            syscall(SYS_futex, &locked, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
            sleepers.fetch_sub(1);
        }
    }
    waiters.fetch_sub(1);
}

void unlock() {
    owner.store(nullptr, std::memory_order_relaxed);
    locked.store(0);
    if (sleepers.load() > 0) syscall(SYS_futex, &locked, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

void acquire_lock() {
    const void* me = this_thread();
    if (owner.load(std::memory_order_relaxed) == me) {
        ++depth;
        return;
    }
    if (!try_lock()) lock_slowly();
    owner.store(me, std::memory_order_relaxed);
    depth = 1;
}

void release_lock() {
    if (--depth == 0) unlock();
}

void hand_over_lock() {
    if (waiters.load(std::memory_order_relaxed) == 0) return;
    const int held = release_lock_fully();
    for (int turn = 0; turn < 64 && waiters.load() > 0 && locked.load() == 0; ++turn) sched_yield();
    reacquire_lock(held);
}

int release_lock_fully() {
    const int held = depth;
    depth = 0;
    unlock();
    return held;
}

void reacquire_lock(int held) {
    if (!try_lock()) lock_slowly();
    owner.store(this_thread(), std::memory_order_relaxed);
    depth = held;
}

}  // namespace starling::progress
