#include "collective/survivors/consensus.h"

#include <algorithm>

namespace starling::collective {

namespace {

using Members = Ballot::Members;

bool includes(const Members& all, const Members& part) {
    for (size_t i = 0; i < all.size(); ++i)
        if (part[i] & ~all[i]) return false;
    return true;
}

/// The tree branches by octal digits. If a host has more processes than cores, each level may take a turn of all processes on the cores, so
/// few levels are better than few children: with 64 processes on two cores a shrink takes 2.3 ms, and 2.5 ms with a binomial tree.
constexpr int kDigitBits = 3;

/// Returns a member's number with 0 for its lowest `bits` bits.
int without_digits(int member, int bits) { return member >> bits << bits; }

/// Returns the parent of a member other than 0 in the tree of all members: its number with 0 for the lowest digit that is not 0.
int parent_of(int member) {
    int place = kDigitBits;
    while (without_digits(member, place) == member) place += kDigitBits;
    return without_digits(member, place);
}

void unite(Members& all, const Members& more) {
    for (size_t i = 0; i < all.size(); ++i) all[i] |= more[i];
}

}  // namespace

void Ballot::merge(const Ballot& other) {
    flag &= other.flag;
    unsettled = std::max(unsettled, other.unsettled);
    for (size_t i = 0; i < acknowledged.size(); ++i) acknowledged[i] &= other.acknowledged[i];
}

bool Ballot::all_acknowledged() const {
    for (size_t i = 0; i < failed.size(); ++i)
        if (failed[i] & ~acknowledged[i]) return false;
    return true;
}

Consensus::Consensus(int members, int me, Outside& outside, const Members& excluded)
    : outside_(outside),
      n_(members),
      me_(me),
      sum_(members),
      excluded_(Ballot::words(members)),
      confirmed_(excluded),
      asking_(Ballot::words(members)) {
    collect_exclusions();
}

/// Returns the parent; kNobody if this member is the root.
int Consensus::parent() const {
    for (int above = me_; above != 0;) {
        above = parent_of(above);
        if (!excludes(above)) return above;
    }
    for (int lowest = 0; lowest < me_; ++lowest)
        if (!excludes(lowest)) return lowest;
    return kNobody;
}

/// Visits the nearest remaining members below a member, until a visit returns false. Returns whether all did not.
template <class Visit>
bool Consensus::each_remaining_below(int member, Visit visit) const {
    // The children have another digit in place of one of the zeros at the end of the member's number.
    for (int place = 0; without_digits(member, place + kDigitBits) == member && member + (1 << place) < n_; place += kDigitBits)
        for (int digit = 1; digit < 1 << kDigitBits && member + (digit << place) < n_; ++digit) {
            const int below = member + (digit << place);
            if (!(excludes(below) ? each_remaining_below(below, visit) : visit(below))) return false;
        }
    return true;
}

/// Visits the children of this member, until a visit returns false. Returns whether all did not.
template <class Visit>
bool Consensus::each_child(Visit visit) const {
    if (!each_remaining_below(me_, visit)) return false;
    if (me_ == 0 || parent() != kNobody) return true;
    // The root also has the members whose ancestors are all excluded.
    return each_remaining_below(0, [&](int member) { return member == me_ || visit(member); });
}

bool Consensus::has_matching_vote(int child) const {
    const auto vote = votes_.find(child);
    return vote != votes_.end() && vote->second == excluded_;
}

std::vector<int> Consensus::awaited() const {
    std::vector<int> members;
    if (!is_waiting()) return members;
    each_child([&](int child) {
        if (!has_matching_vote(child)) members.push_back(child);
        return true;
    });
    if (const int above = parent(); members.empty() && above != kNobody) members.push_back(above);
    return members;
}

void Consensus::vote(const Ballot& mine) {
    sum_.merge(mine);
    voted_ = true;
    note_failures();
    advance();
}

void Consensus::withdraw() {
    Members me(confirmed_.size());
    Ballot::insert(me, me_);
    exclude(me);
}

void Consensus::advance() {
    if (!voted_ || decided_) return;
    if (Ballot::contains(confirmed_, me_)) return end_excluded();
    if (!each_child([this](int child) { return has_matching_vote(child); })) return;
    sum_.failed = excluded_;
    if (const int to = parent(); to != kNobody) return vote_to(to);
    sum_.context = outside_.draw_context();
    decide(Ballot(sum_), me_);
}

void Consensus::vote_to(int member) {
    if (member == sent_to_ && sent_excluding_ == excluded_) return;
    sent_to_ = member;
    sent_excluding_ = excluded_;
    outside_.send(member, BallotKind::vote, sum_);
}

/// Ends the agreement of a member that is excluded, if no other member is left that could send it a decision. Nobody else gets this result.
void Consensus::end_excluded() {
    for (int m = 0; m < n_; ++m)
        if (!excludes(m)) return;
    sum_.failed = excluded_;
    std::fill(sum_.acknowledged.begin(), sum_.acknowledged.end(), 0);
    sum_.context = outside_.draw_context();
    decided_ = is_alone_ = true;
}

/// Adds the failures that the detector reports now.
void Consensus::collect_exclusions() {
    for (int m = 0; m < n_; ++m) {
        if (m == me_ || !outside_.has_failed(m)) continue;
        Ballot::insert(excluded_, m);
        if (m > me_ || outside_.has_ended(m)) Ballot::insert(confirmed_, m);
    }
    unite(excluded_, confirmed_);
}

void Consensus::exclude(const Members& members) {
    const Members before = excluded_, confirmed_before = confirmed_;
    unite(confirmed_, members);
    collect_exclusions();
    if (excluded_ == before && confirmed_ == confirmed_before) return;
    notify_excluded(before);
    if (decided_) {
        if (is_alone_) return;
        send_decision_up(kNobody);
        return request_forwarding(before);
    }
    send_exclusions();
    advance();
}

void Consensus::note_failures() { exclude(Members(confirmed_.size())); }

/// Notifies the members that live, although they are excluded now and were not `before`.
void Consensus::notify_excluded(const Members& before) {
    for (int m = 0; m < n_; ++m) {
        if (m == me_ || !excludes(m) || Ballot::contains(before, m) || outside_.has_failed(m)) continue;
        if (!decided_)
            send_exclusions(m);
        else if (!is_alone_)
            outside_.send(m, BallotKind::decision, sum_);
    }
}

/// Sends the sets to the children whose votes are missing: they may know fewer exclusions, and may regard another member as their parent. A
/// member that is excluded sends them to all, so that each of these sends it the decision.
void Consensus::send_exclusions() {
    if (excludes(me_)) {
        for (int m = 0; m < n_; ++m)
            if (m != me_ && !outside_.has_failed(m)) send_exclusions(m);
        return;
    }
    each_child([this](int child) {
        if (!has_matching_vote(child)) send_exclusions(child);
        return true;
    });
}

/// Sends the sets, unless the member has got them already: so members that disagree for a time do not answer each other for ever.
void Consensus::send_exclusions(int member) {
    std::pair<Members, Members>& sent = sent_sets_[member];
    if (sent.first == excluded_ && sent.second == confirmed_) return;
    sent = {excluded_, confirmed_};
    Ballot sets(n_);
    sets.failed = excluded_;
    sets.acknowledged = confirmed_;
    outside_.send(member, BallotKind::exclusions, sets);
}

/// Handles that a member suspects `suspects`, and may not require of others to exclude them.
void Consensus::note_suspicions(int from, const Members& suspects) {
    Ballot by(n_);
    Ballot::insert(by.failed, from);
    if (Ballot::contains(suspects, me_)) note_suspicion_of_me(by.failed);
    for (int m = 0; m < n_; ++m)
        if (m != me_ && Ballot::contains(suspects, m) && !excludes(m)) outside_.send(m, BallotKind::suspicion, by);
}

void Consensus::decide(const Ballot& decision, int from) {
    sum_ = decision;
    decided_ = true;
    unite(confirmed_, sum_.failed);
    collect_exclusions();
    sent_to_ = kNobody;
    send_decision_up(from);
    // A member that has voted here may not be a child yet, because it knows of more failures than this member.
    Members receivers(excluded_);
    unite(receivers, asking_);
    each_child([&](int child) {
        Ballot::insert(receivers, child);
        return true;
    });
    for (int m = 0; m < n_; ++m)
        if (Ballot::contains(receivers, m) && m != me_ && m != from && m != sent_to_ && !outside_.has_failed(m))
            outside_.send(m, BallotKind::decision, sum_);
    request_forwarding(sum_.failed);
}

/// Returns whether a member may wait for this one's decision, because it may regard this one as its parent.
bool Consensus::may_wait_for_me(int member) const {
    if (Ballot::contains(asking_, member) || parent() == kNobody) return true;
    while (member > me_) member = parent_of(member);
    return member == me_;
}

/// Asks the two lowest remaining members for sending the decision to those that this one suspects now, and not `before`, if these may live
/// and wait for it.
void Consensus::request_forwarding(const Members& before) {
    bool needed = false;
    for (int m = 0; m < n_ && !needed; ++m)
        needed = m != me_ && excludes(m) && may_wait_for_me(m) && !Ballot::contains(before, m) &&
                 !Ballot::contains(sum_.failed, m) && outside_.has_failed(m) && !outside_.has_ended(m);
    int asked = 0;
    for (int m = 0; needed && m < n_ && asked < 2; ++m) {
        if (m == me_ || excludes(m)) continue;
        send_exclusions(m);
        ++asked;
    }
}

/// Answers a member that has not decided, or cannot send the decision to all.
void Consensus::answer_with_decision(int from, const Members& suspects) {
    if (is_alone_) return;
    outside_.send(from, BallotKind::decision, sum_);
    for (int m = 0; m < n_; ++m)
        if (m != me_ && m != from && Ballot::contains(suspects, m) && !excludes(m))
            outside_.send(m, BallotKind::decision, sum_);
}

/// Sends the decision to the parent, unless it has it.
void Consensus::send_decision_up(int from) {
    const int above = parent();
    if (above == sent_to_) return;
    sent_to_ = above;
    if (above != kNobody && above != from) outside_.send(above, BallotKind::decision, sum_);
}

void Consensus::leave() {
    if (!decided_ || is_alone_) return;
    for (int m = 0; m < n_; ++m)
        if (m != me_ && !outside_.has_failed(m)) outside_.send(m, BallotKind::decision, sum_);
}

void Consensus::receive(int from, BallotKind kind, const Ballot& ballot) {
    if (outside_.has_failed(from)) return;
    if (decided_) {
        if (kind == BallotKind::decision) return;
        return answer_with_decision(from, kind == BallotKind::suspicion ? Members(excluded_.size()) : ballot.failed);
    }
    if (kind != BallotKind::decision) Ballot::insert(asking_, from);
    switch (kind) {
        case BallotKind::vote:
            return receive_vote(from, ballot);
        case BallotKind::decision:
            // The remaining members may decide without one that is excluded. This member has no part in that if it is excluded, too.
            if (excludes(me_) || !excludes(from)) decide(Ballot(ballot), from);
            return;
        case BallotKind::exclusions:
            return receive_exclusions(from, ballot);
        case BallotKind::suspicion:
            return note_suspicion_of_me(ballot.failed);
    }
}

void Consensus::receive_vote(int from, const Ballot& ballot) {
    if (excludes(from)) return send_exclusions(from);
    const auto [vote, is_first] = votes_.try_emplace(from, ballot.failed);
    if (!is_first && includes(vote->second, ballot.failed)) return;  // votes may overtake each other; the newest excludes most
    vote->second = ballot.failed;
    sum_.merge(ballot);
    if (ballot.failed != excluded_) {
        sent_sets_.erase(from);  // it answers if it knows more
        send_exclusions(from);
    }
    advance();
}

void Consensus::receive_exclusions(int from, const Ballot& ballot) {
    const Members &excluded = ballot.failed, &confirmed = ballot.acknowledged;
    if (excludes(from)) {
        if (!Ballot::contains(confirmed, from)) send_exclusions(from);
        return;
    }
    exclude(confirmed);
    if (decided_) return answer_with_decision(from, excluded);
    Members suspects(excluded);
    for (size_t i = 0; i < suspects.size(); ++i) suspects[i] &= ~confirmed[i];
    note_suspicions(from, suspects);
    if (!decided_ && !(includes(confirmed, confirmed_) && includes(excluded, excluded_))) send_exclusions(from);
}

/// Excludes the higher members that suspect this one: they do not receive its messages.
void Consensus::note_suspicion_of_me(const Members& by) {
    Members higher(by.size());
    for (int m = me_ + 1; m < n_; ++m)
        if (Ballot::contains(by, m)) Ballot::insert(higher, m);
    exclude(higher);
}

}  // namespace starling::collective
