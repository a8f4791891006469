// How much of a process's time its delays may take (base/delay.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace starling {

/// Stops count as long as they took: where cores are few, a sleeper comes back many times later than it wanted. Of threads, any number
/// at once. Times in ns.
class StopShare {
  public:
    /// One part in so many, and one stop of the longest more.
    static constexpr uint64_t kPart = 5, kLongest = 5'000'000;

    /// Whether a stop of `ns` may begin at `now`, in a process that began at `began`. Then it counts.
    bool begin(uint64_t ns, uint64_t began, uint64_t now) {
        if (stopped_.load(std::memory_order_relaxed) > (now - began) / kPart + kLongest) return false;
        stopped_.fetch_add(ns, std::memory_order_relaxed);
        return true;
    }
    /// It was to take `ns`.
    void end(uint64_t ns, uint64_t took) { stopped_.fetch_add(took - ns, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> stopped_{0};
};

}  // namespace starling
