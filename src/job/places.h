// The cores on which ranks run, as each rank publishes in a table of its job's segment. The table has one word per rank, side by side, so a
// rank that searches for others on its core reads a cache line or two.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::job {

/// The meaning of one rank's word. The rank writes its word when it waits and finds itself on another core than published, and when it goes
/// to sleep. A process that wakes the rank writes it too, and so does the launcher, before the rank starts and after it has ended.
struct CpuLocation {
    static constexpr uint32_t kNowhere = 0;           ///< core not known, or the rank needs none
    static constexpr uint32_t kAsleep = 1u << 16;     ///< bit: the rank sleeps until its doorbell is rung
    static constexpr uint32_t kContested = 1u << 17;  ///< bit: the rank has found that other programs compete for this core
    static constexpr uint32_t kCpu = 0xffff;  ///< mask of the core on which the rank runs: the operating system's number + 1

    /// Returns the word of a rank that is awake on `cpu`: it has work, or polls for some.
    static uint32_t on(uint32_t cpu) { return (cpu + 1) & kCpu; }
    /// Returns the core, and whether the rank sleeps there.
    static uint32_t where(uint32_t word) { return word & (kCpu | kAsleep); }
};

/// Marks a sleeping rank as awake when it gets work, before it runs.
inline void mark_awake(std::atomic<uint32_t>& place) { place.fetch_and(~CpuLocation::kAsleep, std::memory_order_relaxed); }

}  // namespace starling::job
