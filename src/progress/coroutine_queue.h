// The coroutine scheduler: handles whose awaited operation has completed, resumed in order by the engine.
#pragma once

#include <coroutine>

namespace starling::progress {

/// Queues `handle` to be resumed. Called with the library's lock held.
void schedule(std::coroutine_handle<> handle);

/// Resumes what is queued, including what that queues. Returns whether there was anything.
bool run_ready();

}  // namespace starling::progress
