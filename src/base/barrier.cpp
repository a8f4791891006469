#include "base/barrier.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/membarrier.h"
#include "base/state.h"

namespace starling {

namespace {

constexpr long kNeeded = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;

enum class Tristate : uint8_t { nothing, no, yes };
STARLING_STATE Tristate can = Tristate::nothing, hears = Tristate::nothing;

/// Time for which a thread waits in place of a barrier: longer than any store stays in a core's store buffer.
constexpr unsigned kLongerThanStoresWaitUs = 1000;

}  // namespace

bool can_have_barriers() {
    if (can == Tristate::nothing) {
        const long there = membarrier(MEMBARRIER_CMD_QUERY);
        can = there > 0 && (there & kNeeded) == kNeeded ? Tristate::yes : Tristate::no;
    }
    return can == Tristate::yes;
}

bool register_for_barriers() {
    if (hears == Tristate::nothing)
        hears = can_have_barriers() && membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 ? Tristate::yes : Tristate::no;
    return hears == Tristate::yes;
}

bool is_registered_for_barriers() { return hears == Tristate::yes; }

bool has_one_thread() {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;  // ".", "..", and itself
}

void barrier_everywhere() {
    // If the call worked before and fails now, a system call filter was installed in between. A wait then replaces the barrier.
    if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    usleep(kLongerThanStoresWaitUs);
}

}  // namespace starling
