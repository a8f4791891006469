// Delays for builds that search for races between processes and threads (-DSTARLING_DELAYS=ON; `make test-delays`). A thread that reaches a
// marked place sometimes stops there for 0.1 to 5 ms, as if another process had its core. A place is marked if another thread or process
// may act on a state that this thread has just published or is about to use. Examples: after a lock is released, between a check and its
// use, before memory is freed.
//
// TEST_DELAYS in the environment is the seed, which together with STARLING_RANK determines the stops; without it there are none. Other
// builds contain no code for delays.
#pragma once

namespace starling {

#ifdef STARLING_DELAYS
/// Stops this thread, or returns at once. Thread-safe. All stops together take at most a fifth of the process's time.
void delay_at(const char* place);
#else
inline void delay_at(const char*) {}
#endif

}  // namespace starling
