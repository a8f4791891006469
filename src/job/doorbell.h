// The doorbell: the first cache line of a rank's region, what a blocked rank sleeps on.
#pragma once

#include <atomic>
#include <cstdint>

#include "job/places.h"

namespace starling::job {

/// How a rank sleeps: bits of Doorbell::sleeping.
inline constexpr uint32_t kOnFutex = 1;   ///< threads in futex wait on `rings`
inline constexpr uint32_t kOnSocket = 2;  ///< a thread waits for its sockets, the wake socket among them
inline constexpr uint32_t kInWait = 4;    ///< a thread of the program sleeps in a wait: those of the library may sleep on

/// The bits by which a futex tells threads of the program from those of the library. Threads of the program wait for either.
inline constexpr uint32_t kProgramThreads = 1, kLibraryThreads = 2;

/// Owned by the rank whose region it starts; rung by anyone who gave it work (peers, the launcher).
struct alignas(64) Doorbell {
    std::atomic<uint32_t> rings;     ///< futex word; incremented to wake
    std::atomic<uint32_t> sleeping;  ///< not 0 while the rank is, or is about to be, blocked; says how
    /// Name of the abstract datagram socket that wakes a thread which waits for sockets; set before kOnSocket is.
    char wake_name[16];
    uint32_t wake_name_length;
    /// Bytes from here to the rank's word in its job's table of places; 0 as long as it has not said where it is.
    int64_t place_distance;

    std::atomic<uint32_t>* place() {
        if (place_distance == 0) return nullptr;
        return reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<char*>(this) + place_distance);
    }
};
static_assert(sizeof(Doorbell) == 64);

/// Wakes the rank, which sleeps as `how` says.
void wake(Doorbell& doorbell, uint32_t how);

/// Wakes the rank if it sleeps. The caller must have made its message visible before; the check is ordered
/// after it. Safe from any process that maps the region.
inline void ring(Doorbell& doorbell) {
    // Pairs with the sleeper's store to `sleeping` followed by its last look for work: one of the two sees
    // the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (const uint32_t how = doorbell.sleeping.load(std::memory_order_relaxed)) [[unlikely]]
        wake(doorbell, how);
}

/// The owner's: makes the socket that ring() writes to and puts its name into the doorbell. Non-blocking and
/// close-on-exec; what comes on it says nothing but "look". -1 with errno.
int open_wake_socket(Doorbell& doorbell);

/// The owner's: takes what has come on the wake socket; whether anything had.
bool drain_wake_socket(int fd);

}  // namespace starling::job
