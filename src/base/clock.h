// Monotonic time.
#pragma once

#include <cstdint>
#include <ctime>

namespace starling {

/// Nanoseconds since some point in the past, the same for all processes of this host.
inline uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace starling
