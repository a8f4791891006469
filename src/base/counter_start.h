// Where numbers of few bits begin: sequence numbers, generations, serials, positions in rings. They wrap, in a job that runs for long
// enough; a build with STARLING_COUNTER_START has them begin shortly before that, so that whatever it runs goes through it.
//
// Numbers that two processes must agree on begin alike in all builds of one universe, which is one build.
#pragma once

#include <cstdint>

namespace starling {

#ifdef STARLING_COUNTER_START
/// So many numbers before they wrap; 0: they begin at 0.
inline constexpr uint32_t kBeforeWrap = STARLING_COUNTER_START;
#else
inline constexpr uint32_t kBeforeWrap = 0;
#endif

/// What a counter holds before its first number is drawn. Of narrower types the lowest bits.
inline constexpr uint32_t kCounterStart = 0u - kBeforeWrap;

}  // namespace starling
