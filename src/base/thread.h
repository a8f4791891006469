// Threads of the library itself.
#pragma once

#include <pthread.h>

namespace starling {

/// Starts a thread, and returns 0 or an errno value. All signals are blocked in it, because the program's signals are for its own threads.
/// Its stack has at least 1 MB, whatever `ulimit -s` is, because a thread's stack is as long as that limit by default.
int start_thread(pthread_t& thread, void* (*run)(void*), void* argument);

}  // namespace starling
