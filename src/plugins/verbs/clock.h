// Time with a resolution of some milliseconds, without a system call.
#pragma once

#include <cstdint>
#include <ctime>

namespace starling::verbs {

/// Returns the time since some point in the past, ns.
inline uint64_t coarse_now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace starling::verbs
