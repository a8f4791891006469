// Limits the share of a process's time that its delays take (base/delay.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace starling {

/// Sums up the stops, each by the time that it really took: where cores are few, a sleep may take many times as long as requested.
/// Thread-safe. Times in ns.
class StopShare {
  public:
    /// Stops may take 1/kPart of the time, plus one stop of the longest duration.
    static constexpr uint64_t kPart = 5, kLongest = 5'000'000;

    /// Returns whether a stop of `ns` may begin at `now`, in a process that began at `began`; if so, counts it.
    bool begin(uint64_t ns, uint64_t began, uint64_t now) {
        if (stopped_.load(std::memory_order_relaxed) > (now - began) / kPart + kLongest) return false;
        stopped_.fetch_add(ns, std::memory_order_relaxed);
        return true;
    }
    /// Corrects the sum for a stop that begin() counted as `ns` and that really took `took`.
    void end(uint64_t ns, uint64_t took) { stopped_.fetch_add(took - ns, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> stopped_{0};
};

}  // namespace starling
