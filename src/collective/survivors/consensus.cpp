#include "collective/survivors/consensus.h"

#include <algorithm>

namespace starling::collective {

void Ballot::merge(const Ballot& other) {
    flag &= other.flag;
    unsettled = std::max(unsettled, other.unsettled);
    for (size_t i = 0; i < failed.size(); ++i) {
        failed[i] |= other.failed[i];
        acknowledged[i] &= other.acknowledged[i];
    }
}

bool Ballot::all_acknowledged() const {
    for (size_t i = 0; i < failed.size(); ++i)
        if (failed[i] & ~acknowledged[i]) return false;
    return true;
}

Consensus::Consensus(int members, int me, Outside& outside)
    : outside_(outside), n_(members), me_(me), sum_(members), heard_(static_cast<size_t>(members)) {}

/// Returns the parent; kNobody if this member is the root.
int Consensus::parent() const {
    for (int above = me_; above != 0;) {
        above &= above - 1;
        if (!outside_.has_failed(above)) return above;
    }
    for (int lowest = 0; lowest < me_; ++lowest)
        if (!outside_.has_failed(lowest)) return lowest;
    return kNobody;
}

/// Visits the nearest living members below a member, until a visit returns false. Returns whether all did not.
template <class Visit>
bool Consensus::each_living_below(int member, Visit visit) const {
    for (int bit = 1; member + bit < n_ && (member & bit) == 0; bit *= 2) {
        const int below = member + bit;
        if (!(outside_.has_failed(below) ? each_living_below(below, visit) : visit(below))) return false;
    }
    return true;
}

/// Visits the children of this member, until a visit returns false. Returns whether all did not.
template <class Visit>
bool Consensus::each_child(Visit visit) const {
    if (!each_living_below(me_, visit)) return false;
    if (me_ == 0 || parent() != kNobody) return true;
    // The root also has the members whose ancestors have all failed.
    return each_living_below(0, [&](int member) { return member == me_ || visit(member); });
}

void Consensus::vote(const Ballot& mine) {
    sum_.merge(mine);
    voted_ = true;
    if (!decided_) advance();
}

void Consensus::advance() {
    if (!voted_ || decided_) return;
    if (!each_child([this](int child) { return heard_[static_cast<size_t>(child)]; })) return;
    // A failed child may not have voted; its failure is then part of the decision.
    for (int m = 0; m < n_; ++m)
        if (outside_.has_failed(m)) Ballot::insert(sum_.failed, m);
    const int to = parent();
    if (to == kNobody) {
        sum_.context = outside_.draw_context();
        return decide(sum_, me_);
    }
    if (to == sent_to_) return;
    sent_to_ = to;
    outside_.send(to, BallotKind::vote, sum_);
}

void Consensus::decide(const Ballot& decision, int from) {
    sum_ = decision;
    decided_ = true;
    sent_to_ = parent();
    if (sent_to_ != kNobody && sent_to_ != from) outside_.send(sent_to_, BallotKind::decision, sum_);
    // A member that has voted here may not be a child yet, because it knows of more failures than this member.
    each_child([this](int child) { return heard_[static_cast<size_t>(child)] = true; });
    for (int m = 0; m < n_; ++m)
        if (heard_[static_cast<size_t>(m)] && m != from && m != sent_to_ && !outside_.has_failed(m))
            outside_.send(m, BallotKind::decision, sum_);
}

void Consensus::leave() {
    if (!decided_) return;
    for (int m = 0; m < n_; ++m)
        if (m != me_ && !outside_.has_failed(m)) outside_.send(m, BallotKind::decision, sum_);
}

void Consensus::receive(int from, BallotKind kind, const Ballot& ballot) {
    if (outside_.has_failed(from)) return;
    if (decided_) {
        if (kind == BallotKind::vote) outside_.send(from, BallotKind::decision, sum_);
        return;
    }
    if (kind == BallotKind::decision) return decide(Ballot(ballot), from);
    sum_.merge(ballot);
    heard_[static_cast<size_t>(from)] = true;
    advance();
}

void Consensus::note_failures() {
    if (!decided_) return advance();
    const int above = parent();
    if (above == sent_to_) return;
    sent_to_ = above;
    if (above != kNobody) outside_.send(above, BallotKind::decision, sum_);
}

}  // namespace starling::collective
