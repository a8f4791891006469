// Counts the known processes on each core, and decides by the counts whether a move to another core helps.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>

#include "job/places.h"

namespace starling::progress {

/// The other known processes on the cores, by their words in the tables (job/places.h). Cores are the operating system's numbers.
class CoreLoads {
  public:
    /// Counts a process by its word.
    void add(uint32_t word) {
        const uint32_t cpu = (word & job::CpuLocation::kCpu) - 1;
        if (word == job::CpuLocation::kNowhere || cpu >= cores_.size()) return;
        Core& core = cores_[cpu];
        if (core.known < kMost) ++core.known;
        if (!(word & job::CpuLocation::kAsleep) && core.awake < kMost) ++core.awake;
        if (word & job::CpuLocation::kContested) core.contested = true;
    }

    /// Returns whether a process on core `from`, which it shares, should move to `to`: there no process is awake, or there is only one
    /// while `from` has three or more. Larger groups are left to the kernel, which knows what else runs on the cores. Processes that sleep
    /// may wake at any time, so `to` must not have more of them, awake or asleep, than `from`. Processes that compete with unknown threads
    /// on `to` are left alone if those on `from` do not.
    bool should_move(uint32_t from, uint32_t to) const {
        if (from >= cores_.size() || to >= cores_.size()) return false;
        const Core &here = cores_[from], &there = cores_[to];
        if (here.awake == 0 || there.known > here.known || (there.contested && !here.contested)) return false;
        return there.awake == 0 || (there.known == 1 && here.awake >= 2);
    }

  private:
    static constexpr uint8_t kMost = 127;  ///< counts stop here
    /// Two bytes, since the table of all cores lies on the stack, whose pages are memory of each process.
    struct Core {
        uint8_t known = 0;  ///< number of other known processes, awake or asleep
        uint8_t awake : 7 = 0;
        bool contested : 1 = false;  ///< whether one of them has found that unknown threads want the core
    };
    static_assert(sizeof(Core) == 2);
    std::array<Core, CPU_SETSIZE> cores_{};
};

}  // namespace starling::progress
