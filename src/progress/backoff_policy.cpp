#include "progress/backoff_policy.h"

#include <algorithm>
#include <iterator>

namespace starling::progress {

namespace {

/// A yield that takes longer has let another thread run; an undisturbed one takes a third of this.
constexpr uint64_t kLateYieldNs = 1000;
constexpr int kCrowdedAfter = 2;  ///< a core is crowded if this number of the last eight yields was late

}  // namespace

void CoreWatch::see(uint32_t cpu, bool neighbour, uint64_t now) {
    neighbour_ = neighbour;
    if (now - vain_at_ > kVainNs) vain_ = 0;
    suspected_ = may_have_unlisted_neighbour(now);
    if (!neighbour) shared_ = 0;
    if (contest_->cpu == cpu) return;
    Contest* const known = std::find_if(contests_, std::end(contests_), [cpu](const Contest& c) { return c.cpu == cpu; });
    // A new core replaces the entry that was created first.
    contest_ = known != std::end(contests_) ? known : &contests_[next_forgotten_++ % kCoresKnown];
    if (known == std::end(contests_)) *contest_ = {.cpu = cpu};
}

void CoreWatch::lost(uint64_t ns, uint64_t now) {
    if (ns < kSliceNs || now < begun_) return;
    Contest& here = *contest_;
    // `again`: the quiet time since the last contest is shorter than that contest was.
    const bool again = here.length > 0 && now < here.until + here.length + ns;
    const bool twice = here.last_loss != 0 && now < here.last_loss + kBetweenLossesNs + ns;
    here.last_loss = now;
    if (!again && !twice) return;
    here.length = again ? std::min(here.length * 2, kLongestContestNs) : kFirstContestNs;
    here.until = now + here.length;
}

void CoreWatch::yielded(uint64_t ns, uint64_t now) {
    lateness_ = lateness_ << 1 | (ns > kLateYieldNs ? 1 : 0);
    crowded_ = __builtin_popcount(lateness_ & 0xff) >= kCrowdedAfter;
    shared_ = ns > kLateYieldNs ? shared_ + 1 : 0;
    vain_ = ns > kLateYieldNs || !suspects_neighbour(now) ? 0 : vain_ + 1;
    vain_at_ = now;
    lost(ns, now);
}

bool CoreWatch::should_move(uint64_t now) {
    if (shared_ < kTurnsBeforeMove || now < rest_until_) return false;
    shared_ = 0;
    return true;
}

void CoreWatch::moved(bool found, uint64_t now) {
    const bool again = rest_ > 0 && now < rest_until_ + 2 * rest_;
    rest_ = again && !found ? std::min(rest_ * 2, kLongestRestNs) : kFirstRestNs;
    rest_until_ = now + rest_;
}

Waiting::Act Waiting::next(const CoreObservation& look, const BackoffSettings& terms) {
    if (announced_) return Act::sleep;
    const bool stayed = core_.is_on(look.cpu);
    if (should_check_cores(look.now) || since_ == 0) asked_ = look.now;
    if (since_ == 0) since_ = look.now;
    if (look.short_of_cores) core_.suspect_neighbour(look.now);
    // A wait that must not sleep has only yields to let another thread run.
    core_.note_unlisted_peers(terms.unlisted_peers || !terms.may_sleep);
    const bool neighbour = look.neighbour || core_.may_have_unlisted_neighbour(look.now);
    core_.see(look.cpu, neighbour, look.now);
    // If this thread changed cores, it is unknown on which of the two cores it was delayed, so no loss is recorded.
    if (checked_at_ != 0 && look.now > checked_at_ && stayed) core_.lost(look.now - checked_at_, look.now);
    checked_at_ = look.now;
    if (look.contested) core_.note_foreign_load(look.now);
    const bool contested = core_.contested(look.now);
    // Move even if unknown threads want this core. On the new core such threads compete with one process, here with two.
    if (look.neighbour && core_.should_move(look.now)) return Act::move;
    if (terms.may_sleep) {
        uint64_t patience = terms.spin_ns;
        if (contested) patience = std::min(patience, look.neighbour ? 0 : kContestedSpinNs);
        if (!look.neighbour && core_.suspects_neighbour(look.now) && core_.yields_are_vain())
            patience = std::min(patience, terms.unlisted_peers ? 0 : kContestedSpinNs);
        if (later_ || look.now - since_ >= patience) {
            if (contested && look.neighbour) core_.note_yield();
            announced_ = true;
            return Act::announce;
        }
    }
    // A wait that must not sleep can let a neighbour run only by a yield, even on a contested core.
    return neighbour && !(contested && terms.may_sleep) ? Act::yield : Act::spin;
}

void Waiting::moved(bool found, uint64_t ended) {
    core_.moved(found, ended);
    checked_at_ = ended;
}

void Waiting::yielded(uint64_t began, uint64_t ended) {
    core_.yielded(ended - began, ended);
    checked_at_ = ended;
}

void Waiting::slept(uint64_t ended) {
    announced_ = false;
    checked_at_ = ended;
}

}  // namespace starling::progress
