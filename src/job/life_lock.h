// The life lock: a robust mutex in a rank's region, which the rank holds from MPI_Init to its end. When the rank's thread ends, the kernel
// marks the mutex's futex word FUTEX_OWNER_DIED and wakes a waiter. It does so before it frees the process's memory, and therefore 0.1 ms and
// more before the parent gets SIGCHLD. The mark is only a hint: the thread may have ended alone, or the process may have called execve, and
// any process of the job can write the word. Only jobs that survive deaths use the lock.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "job/job_segment.h"

namespace starling::job {

/// Offset of the life lock in a region: away from the doorbell, as processors fetch cache lines in pairs.
inline constexpr uint64_t kLifeLockOffset = 128, kLifeLockBytes = 64;
static_assert(sizeof(pthread_mutex_t) <= kLifeLockBytes);

/// Called by the rank: acquires its life lock for the calling thread, and increments JobHeader::lives. Never released: the C library links
/// the lock into a list of the thread, which is harmless while the segment is mapped. Does nothing where robust mutexes are missing.
void acquire_life_lock(const JobSegment& segment, uint32_t rank);

/// Returns the futex word of a rank's life lock: 0 until the rank holds it.
std::atomic<uint32_t>& life_word(const JobSegment& segment, uint32_t rank);

}  // namespace starling::job
