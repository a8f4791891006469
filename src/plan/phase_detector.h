// Detects phases that the program does not mark. The program's pulse (plan/loop_detector.h) divides its run into segments. A segment is
// characterized by its partners, each with its share of the messages. Similar segments belong to one phase, whenever they occur. When a
// phase has lasted as long as the last time, the phase that followed it then is assumed to begin now. So a phase is detected at its begin,
// and not only after its end.
//
// Pure: it depends on its arguments only. Its memory does not grow with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/loop_detector.h"
#include "plan/peer_traffic.h"

namespace starling::plan {

class PhaseDetector {
  public:
    /// Records a collective call. Returns whether it ends a segment and begins the next; then call segment().
    bool call(uint64_t site, uint64_t communicator) { return pulse_.call(site, communicator); }

    /// Records the messages of the segment that has ended. Returns the phase that begins: 1, 2, … in the order of detection, or 0 for an
    /// unknown one. It returns the current phase again if that phase's partners have changed. Returns nothing if the current phase
    /// continues.
    std::optional<uint32_t> segment(const Partners& messages);

    static constexpr double kAlike = 0.5;   ///< least overlap of two segments of one phase
    static constexpr double kMoved = 0.75;  ///< overlap below which a phase's partners count as changed
    static constexpr size_t kMostPatterns = 64;

  private:
    /// A known pattern of traffic: each partner (job and rank) with its share of the messages. A partner's priority is its share in
    /// millionths.
    struct Pattern {
        uint32_t phase = 0;  ///< number of the phase; 0 if the pattern was seen only once
        Partners shares;
        uint64_t last_seen = 0;
        uint32_t last_run = 0;   ///< number of segments in the phase's last complete run
        uint32_t successor = 0;  ///< phase that followed the last complete run
    };
    Pattern& recognize(const Partners& shares);
    uint32_t expected_after(const Pattern& pattern);
    std::optional<uint32_t> begin(uint32_t phase, const Partners& shares);
    Pattern* of_phase(uint32_t phase);

    LoopDetector pulse_;
    uint32_t pulses_ = 0;  ///< value of LoopDetector::changes() at the last segment
    std::vector<Pattern> patterns_;
    uint64_t segments_ = 0;
    uint32_t found_ = 0;      ///< phases
    uint32_t now_ = 0;        ///< the phase assumed to be current
    Partners begun_with_;     ///< pattern with which the current phase began
    uint32_t run_phase_ = 0;  ///< phase of the last segment's pattern
    uint32_t run_length_ = 0;
    uint32_t unmatched_segments_ = 0;  ///< number of consecutive segments that are unlike any before
};

/// Returns the share of the messages that two patterns have in common: 0 to 1.
double overlap(const Partners& a, const Partners& b);

}  // namespace starling::plan
