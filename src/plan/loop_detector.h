// The beat of a program: which of its collective calls ends a turn of its outermost loop. Sees nothing but the calls, each known by its
// place in the program and its communicator, so all members of a communicator find the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::plan {

/// A call recurs regularly if each time the same others lie between, however often (a solver may take more iterations now
/// than then), or as many. Of those that do, the one whose turns are the longest is the pulse.
class LoopDetector {
  public:
    /// A call. Whether it is the pulse.
    bool call(uint64_t site, uint64_t communicator);
    /// How often another call became the pulse.
    uint32_t changes() const { return changes_; }

    static constexpr uint32_t kBeats = 4;      ///< regular turns before a call is believed
    static constexpr size_t kMostCalls = 128;  ///< that are remembered; those that were not made for longest are forgotten

  private:
    struct Recurring {
        uint64_t site, communicator;
        uint64_t last = 0;     ///< when: as calls_
        uint64_t period = 0;   ///< calls from one to the next, about
        uint64_t between = 0;  ///< which others lay between the last two
        uint32_t beats = 0;    ///< regular ones in a row
        bool missed = false;   ///< the last turn was not regular
    };
    /// Turns may become longer, but one that long is no turn any more.
    bool is_alive(const Recurring& call) const { return calls_ - call.last <= 16 * call.period; }
    void beat(Recurring& call, uint64_t between);

    std::vector<Recurring> recent_;  ///< the last one made first
    uint64_t calls_ = 0;
    uint64_t pulse_site_ = 0, pulse_communicator_ = 0;
    uint32_t changes_ = 0;
};

}  // namespace starling::plan
