// Delays, for builds that look for races between processes and threads (-DSTARLING_DELAYS=ON; `make test-delays`): who comes to a marked
// place stops there now and then, for 0.1 to 5 ms, as if another had its core. Marks stand where somebody else may act on what this
// process has just said or is about to do: after a lock is given back, between a check and its use, before memory is freed.
//
// TEST_DELAYS in the environment is the seed, which together with STARLING_RANK says who stops where; without it nobody does. Other builds
// have no code for it.
#pragma once

namespace starling {

#ifdef STARLING_DELAYS
/// Of threads, any number at once. Stops for a fifth of the process's time at most.
void delay_at(const char* place);
#else
inline void delay_at(const char*) {}
#endif

}  // namespace starling
