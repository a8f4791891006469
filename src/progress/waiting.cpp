#include "progress/waiting.h"

#include <algorithm>

namespace starling::progress {

namespace {

constexpr uint64_t kLateYieldNs = 1000;  ///< an undisturbed sched_yield takes a third of this
constexpr int kCrowdedAfter = 2;         ///< late yields in a row of eight

}  // namespace

void CoreWatch::lost(uint64_t ns, uint64_t now) {
    if (ns < kSliceNs) return;
    // Soon: before as much time has passed in peace as the last contest took.
    const bool again = contest_ > 0 && now < contested_until_ + contest_ + ns;
    const bool twice = last_loss_ != 0 && now < last_loss_ + kBetweenLossesNs + ns;
    last_loss_ = now;
    if (!again && !twice) return;
    contest_ = again ? std::min(contest_ * 2, kLongestContestNs) : kFirstContestNs;
    contested_until_ = now + contest_;
}

void CoreWatch::yielded(uint64_t ns, uint64_t now) {
    lateness_ = lateness_ << 1 | (ns > kLateYieldNs ? 1 : 0);
    crowded_ = __builtin_popcount(lateness_ & 0xff) >= kCrowdedAfter;
    shared_ = ns > kLateYieldNs ? shared_ + 1 : 0;
    lost(ns, now);
}

bool CoreWatch::should_move(uint64_t now) {
    if (shared_ < kYieldsBeforeMove || now < rest_until_) return false;
    shared_ = 0;
    const bool again = rest_ > 0 && now < rest_until_ + 2 * rest_;
    rest_ = again ? std::min(rest_ * 2, kLongestRestNs) : kFirstRestNs;
    rest_until_ = now + rest_;
    return true;
}

Waiting::Act Waiting::next(const Look& look, const Terms& terms) {
    if (announced_) return Act::sleep;
    core_.see(look.neighbour);
    if (looked_ != 0 && look.now > looked_) core_.lost(look.now - looked_, look.now);
    looked_ = look.now;
    if (since_ == 0) since_ = look.now;
    const bool contested = core_.contested(look.now);
    if (terms.may_sleep) {
        uint64_t patience = terms.spin_ns;
        if (contested) patience = std::min(patience, look.neighbour ? 0 : kContestedSpinNs);
        if (later_ || look.now - since_ >= patience) {
            announced_ = true;
            return Act::announce;
        }
    }
    if (look.neighbour && core_.should_move(look.now)) return Act::move;
    // Who may not sleep has no other way to let a neighbour run.
    return look.neighbour && !(contested && terms.may_sleep) ? Act::yield : Act::spin;
}

void Waiting::yielded(uint64_t began, uint64_t ended) {
    core_.yielded(ended - began, ended);
    looked_ = ended;
}

void Waiting::slept(uint64_t ended) {
    announced_ = false;
    looked_ = ended;
}

}  // namespace starling::progress
