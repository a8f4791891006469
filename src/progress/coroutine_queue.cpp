#include "progress/coroutine_queue.h"

#include <vector>

#include "base/no_destroy.h"
#include "base/state.h"

namespace starling::progress {

namespace {
// The scheduled handles, which are taken from the front one by one. A resumed coroutine may schedule more. It may also call a function of
// the program, during which other threads poll and run the remaining handles. The vector is cleared at the end, so that its capacity is
// reused.
STARLING_STATE NoDestroy<std::vector<std::coroutine_handle<>>> queue_storage;
constinit auto& queue = queue_storage.value;
STARLING_STATE std::size_t taken = 0;
}  // namespace

void schedule(std::coroutine_handle<> handle) { queue.push_back(handle); }

bool run_ready() {
    if (queue.empty()) return false;
    bool any = false;
    while (taken < queue.size()) {
        const std::coroutine_handle<> next = queue[taken++];
        next.resume();
        any = true;
    }
    queue.clear();
    taken = 0;
    return any;
}

}  // namespace starling::progress
