#include "boot/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace starling::boot {

void ring(Doorbell& doorbell) {
    // Pairs with the sleeper's store to `sleeping` followed by its last look for work: one of the two sees
    // the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (doorbell.sleeping.load(std::memory_order_relaxed) == 0) return;
    doorbell.rings.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace starling::boot
