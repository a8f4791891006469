#include "progress/ready.h"

#include <vector>

namespace starling::progress {

namespace {
// Two vectors, so that resuming may schedule more without invalidating the walk; their capacity is reused.
constinit std::vector<std::coroutine_handle<>> queue;
constinit std::vector<std::coroutine_handle<>> running;
}  // namespace

void schedule(std::coroutine_handle<> handle) { queue.push_back(handle); }

bool run_ready() {
    if (queue.empty() || !running.empty()) return false;
    while (!queue.empty()) {
        running.swap(queue);
        for (auto handle : running) handle.resume();
        running.clear();
    }
    return true;
}

}  // namespace starling::progress
