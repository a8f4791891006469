// The doorbell: the first cache line of a rank's region, on which a blocked rank sleeps and which senders set to wake it.
#pragma once

#include <atomic>
#include <cstdint>

#include "job/places.h"

namespace starling::job {

/// How a rank sleeps: bits of Doorbell::sleeping.
inline constexpr uint32_t kOnFutex = 1;   ///< bit: threads are in a futex wait on `rings`
inline constexpr uint32_t kOnSocket = 2;  ///< bit: a thread waits for its sockets, among them the wake socket
inline constexpr uint32_t kInWait = 4;    ///< bit: a thread of the program sleeps in a wait; those of the library need no wake

/// The futex bits that distinguish threads of the program from those of the library. Threads of the program wait for both bits.
inline constexpr uint32_t kProgramThreads = 1, kLibraryThreads = 2;

/// Owned by the rank whose region it starts. Rung by every process that has work for the rank: peers and the launcher.
struct alignas(64) Doorbell {
    std::atomic<uint32_t> rings;     ///< futex word, incremented to wake the rank
    std::atomic<uint32_t> sleeping;  ///< how the rank sleeps or is about to sleep, kOnFutex etc.; 0 while it runs
    /// Name of the abstract datagram socket that wakes a thread that waits for sockets; set before kOnSocket.
    char wake_name[16];
    uint32_t wake_name_length;
    /// Distance in bytes from this doorbell to the rank's word in its job's table of cores (job/places.h); 0 until the rank has set it.
    int64_t place_distance;

    std::atomic<uint32_t>* place() {
        if (place_distance == 0) return nullptr;
        return reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<char*>(this) + place_distance);
    }
};
static_assert(sizeof(Doorbell) == 64);

/// Wakes the rank, which sleeps as `how` shows.
void wake(Doorbell& doorbell, uint32_t how);

/// Wakes the rank if it sleeps. The caller must have made its message visible before; the check of `sleeping` is ordered after it. Safe
/// from any process that maps the region.
inline void ring(Doorbell& doorbell) {
    // Pairs with the sleeper, which stores `sleeping` and then polls once more: either the sleeper finds the message, or this process sees
    // `sleeping`.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (const uint32_t how = doorbell.sleeping.load(std::memory_order_relaxed)) [[unlikely]]
        wake(doorbell, how);
}

/// Called by the owner: creates the socket to which ring() writes and stores its name in the doorbell. Non-blocking and close-on-exec. A
/// datagram on it carries no information except that the owner must poll. Returns -1 with errno.
int open_wake_socket(Doorbell& doorbell);

/// Called by the owner: reads from the wake socket, but no more than a few datagrams, and returns whether there was any.
bool drain_wake_socket(int fd);

}  // namespace starling::job
