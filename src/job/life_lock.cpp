#include "job/life_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace starling::job {

namespace {

pthread_mutex_t& life_lock(const JobSegment& segment, uint32_t rank) {
    return *reinterpret_cast<pthread_mutex_t*>(segment.region(rank) + kLifeLockOffset);
}

bool make_robust_mutex(pthread_mutex_t& mutex) {
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0) return false;
    const bool made = pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0 &&
                      pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0 && pthread_mutex_init(&mutex, &kind) == 0;
    pthread_mutexattr_destroy(&kind);
    return made;
}

}  // namespace

std::atomic<uint32_t>& life_word(const JobSegment& segment, uint32_t rank) {
    return reinterpret_cast<std::atomic<uint32_t>&>(life_lock(segment, rank).__data.__lock);
}

void acquire_life_lock(const JobSegment& segment, uint32_t rank) {
    pthread_mutex_t& mutex = life_lock(segment, rank);
    // Nobody else ever holds the lock of a living process. (ThreadSanitizer would take a wait here as an order of locks.)
    if (!make_robust_mutex(mutex) || pthread_mutex_trylock(&mutex) != 0) return;
    // The kernel wakes only if this bit is set, and the launcher need not write the word.
    life_word(segment, rank).fetch_or(FUTEX_WAITERS);
    std::atomic<uint32_t>& lives = segment.header().lives;
    lives.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &lives, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace starling::job
