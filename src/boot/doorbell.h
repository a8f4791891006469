// The doorbell: the first cache line of a rank's region, what a blocked rank sleeps on.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::boot {

/// Owned by the rank whose region it starts; rung by anyone who gave it work (peers, the launcher).
struct alignas(64) Doorbell {
    std::atomic<uint32_t> rings;  ///< futex word; incremented to wake
    std::atomic<uint32_t>
        sleeping;  ///< 1 while the rank is, or is about to be, blocked in futex wait on `rings`
};

/// Wakes the rank if it sleeps. The caller must have made its message visible before; the check is ordered
/// after it. Safe from any process that maps the region.
void ring(Doorbell& doorbell);

}  // namespace starling::boot
