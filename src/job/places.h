// Where ranks run, as each says itself in a table of its job's segment: a word per rank, side by side, so that who looks
// for company on a core reads a cache line or two.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::job {

/// One rank's word. Written by the rank when it waits and finds itself elsewhere than it said last, and when it goes to
/// sleep; by who wakes it; by its launcher before it starts and when it has gone.
struct Place {
    static constexpr uint32_t kNowhere = 0;           ///< not known, or without any use for a core
    static constexpr uint32_t kAsleep = 1u << 16;     ///< blocked until it is rung
    static constexpr uint32_t kContested = 1u << 17;  ///< it has found that strangers want this core
    static constexpr uint32_t kCpu = 0xffff;          ///< the operating system's number of its core + 1

    /// Awake on this core: it has work, or looks for some.
    static uint32_t on(uint32_t cpu) { return (cpu + 1) & kCpu; }
    static bool is_awake_on(uint32_t word, uint32_t cpu) { return where(word) == on(cpu); }
    /// Its core, and whether it is asleep there.
    static uint32_t where(uint32_t word) { return word & (kCpu | kAsleep); }
};

/// A rank that was asleep has something to do, though it does not run yet.
inline void mark_awake(std::atomic<uint32_t>& place) { place.fetch_and(~Place::kAsleep, std::memory_order_relaxed); }

}  // namespace starling::job
