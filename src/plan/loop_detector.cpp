#include "plan/loop_detector.h"

#include <algorithm>

#include "base/hash.h"

namespace starling::plan {

// Updates a recurring call with its latest interval. A regular call stays regular after one irregular interval, for example if one interval
// in ten includes a checkpoint.
void LoopDetector::beat(Recurring& call, uint64_t between) {
    const uint64_t turn = calls_ - call.last;
    const uint64_t off = turn > call.period ? turn - call.period : call.period - turn;
    if (between == call.between || 4 * off <= call.period) {
        ++call.beats;
        call.missed = false;
        call.period = (3 * call.period + turn + 2) / 4;
    } else if (call.beats >= kBeats && !call.missed) {
        call.missed = true;
        call.last = calls_;
        return;
    } else {
        call.beats = 0;
        call.period = turn;
    }
    call.between = between;
    call.last = calls_;
}

bool LoopDetector::call(uint64_t site, uint64_t communicator) {
    ++calls_;
    uint64_t between = 0;
    auto at = recent_.begin();
    for (; at != recent_.end() && (at->site != site || at->communicator != communicator); ++at)
        between += hash_on(hash_on(kEmptyHash, at->site), at->communicator);
    if (at != recent_.end()) {
        beat(*at, between);
        std::rotate(recent_.begin(), at, at + 1);
    } else {
        if (recent_.size() >= kMostCalls) recent_.pop_back();
        recent_.insert(recent_.begin(), Recurring{site, communicator, calls_});
    }
    const Recurring& now = recent_.front();
    if (now.beats < kBeats) return false;
    if (site == pulse_site_ && communicator == pulse_communicator_) return true;
    const auto pulse = std::find_if(recent_.begin(), recent_.end(), [this](const Recurring& call) {
        return call.site == pulse_site_ && call.communicator == pulse_communicator_;
    });
    const bool better =
        pulse == recent_.end() || pulse->beats < kBeats || !is_alive(*pulse) || 2 * now.period > 3 * pulse->period;
    if (!better) return false;
    pulse_site_ = site;
    pulse_communicator_ = communicator;
    ++changes_;
    return true;
}

}  // namespace starling::plan
