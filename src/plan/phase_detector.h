// Phases without marks. The program's pulse (plan/loop_detector.h) cuts its run into segments; a segment is known by its partners, each with its
// share of the messages. Segments that are like one another are one phase, whenever they come; and when a phase has lasted as long as the
// last time, the one that followed it then is expected now, so that it is known when it begins and not when it is over.
//
// Pure: nothing but what it is told. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/loop_detector.h"
#include "plan/peer_traffic.h"

namespace starling::plan {

class PhaseDetector {
  public:
    /// A collective call. Whether it ends a segment, and begins the next: then segment() is to be called.
    bool call(uint64_t site, uint64_t communicator) { return pulse_.call(site, communicator); }

    /// The messages of the segment that has just ended. Gives the phase that begins, 1, 2, … in the order in which they were found,
    /// perhaps the same one again, as its partners have moved; 0: nothing that is known. Nothing: what is going on goes on.
    std::optional<uint32_t> segment(const Partners& messages);

    static constexpr double kAlike = 0.5;   ///< segments of one phase share so much of their messages
    static constexpr double kMoved = 0.75;  ///< with less, its partners have moved
    static constexpr size_t kMostPatterns = 64;

  private:
    /// Shares of the messages, by job and rank; the priority counts in millionths.
    struct Pattern {
        uint32_t phase = 0;  ///< 0: it has come but once
        Partners shares;
        uint64_t last_seen = 0;
        uint32_t last_run = 0;   ///< segments, the last time that it was over
        uint32_t successor = 0;  ///< phase that came then
    };
    Pattern& recognize(const Partners& shares);
    uint32_t expected_after(const Pattern& pattern);
    std::optional<uint32_t> begin(uint32_t phase, const Partners& shares);
    Pattern* of_phase(uint32_t phase);

    LoopDetector pulse_;
    uint32_t pulses_ = 0;  ///< as LoopDetector::changes()
    std::vector<Pattern> patterns_;
    uint64_t segments_ = 0;
    uint32_t found_ = 0;      ///< phases
    uint32_t now_ = 0;        ///< phase that is thought to go on
    Partners begun_with_;     ///< what its first segment was like
    uint32_t run_phase_ = 0;  ///< of the last segment
    uint32_t run_length_ = 0;
    uint32_t strangers_ = 0;  ///< segments in a row that were like nothing before
};

/// How much of two patterns is the same: 0 to 1.
double overlap(const Partners& a, const Partners& b);

}  // namespace starling::plan
