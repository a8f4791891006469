// The coroutine scheduler: handles whose awaited operation has completed, resumed in order by the engine.
#pragma once

#include <coroutine>

namespace starling::progress {

/// Queues `handle` to be resumed. Called with the library's lock held.
void schedule(std::coroutine_handle<> handle);

/// Resumes all queued coroutines, including those queued meanwhile. Returns whether there were any.
bool run_ready();

}  // namespace starling::progress
