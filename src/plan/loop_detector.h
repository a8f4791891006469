// LoopDetector finds the pulse of a program: the collective call that ends an iteration of its outermost loop. It uses only the collective
// calls, each identified by its call site and communicator, so all members of a communicator find the same pulse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::plan {

/// A call recurs regularly in two cases. In the first, the same set of other calls occurs between its occurrences, each any number of
/// times, since a solver's number of iterations may vary. In the second, about the same number of calls does. The regular call with the
/// longest period is the pulse.
class LoopDetector {
  public:
    /// Records a call. Returns whether it is the pulse.
    bool call(uint64_t site, uint64_t communicator);
    /// Returns how often the pulse has changed from one call to another.
    uint32_t changes() const { return changes_; }

    static constexpr uint32_t kBeats = 4;      ///< number of regular intervals after which a call counts as regular
    static constexpr size_t kMostCalls = 128;  ///< number of calls remembered; the least recent ones are dropped

  private:
    struct Recurring {
        uint64_t site, communicator;
        uint64_t last = 0;     ///< value of calls_ at the last occurrence of this call
        uint64_t period = 0;   ///< average distance between consecutive occurrences of this call, in calls of any kind
        uint64_t between = 0;  ///< hash of the set of other calls between the last two occurrences of this call
        uint32_t beats = 0;    ///< number of consecutive regular intervals
        bool missed = false;   ///< whether the last interval was irregular
    };
    /// Returns whether the call may still recur. Its intervals may become longer, but not 16 times as long.
    bool is_alive(const Recurring& call) const { return calls_ - call.last <= 16 * call.period; }
    void beat(Recurring& call, uint64_t between);

    std::vector<Recurring> recent_;  ///< most recent call first
    uint64_t calls_ = 0;
    uint64_t pulse_site_ = 0, pulse_communicator_ = 0;
    uint32_t changes_ = 0;
};

}  // namespace starling::plan
