// Initial values of counters of few bits: sequence numbers, generations, serials, positions in rings. They wrap in a job that runs long
// enough. A build with STARLING_COUNTER_START starts them shortly before the wrap, so that every test run passes through it.
//
// Two processes must agree on the initial values of some counters, so all processes of a universe must use one build.
#pragma once

#include <cstdint>

namespace starling {

#ifdef STARLING_COUNTER_START
/// Number of increments from a counter's initial value to its wrap; 0: counters start at 0.
inline constexpr uint32_t kBeforeWrap = STARLING_COUNTER_START;
#else
inline constexpr uint32_t kBeforeWrap = 0;
#endif

/// The value of a counter before its first use. A narrower type takes the lowest bits.
inline constexpr uint32_t kCounterStart = 0u - kBeforeWrap;

}  // namespace starling
