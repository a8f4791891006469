// Consensus: one agreement among the living members of a group, as a state machine without messages of its own.
//
// The members form a tree: the parent of member m is m with 0 for its lowest octal digit that is not 0. An excluded member is skipped: its
// children belong to its nearest remaining ancestor, or to the lowest remaining member, which is the root. Each member waits for the votes
// of its remaining children, merges them with its own and votes to its parent. The root decides and sends the decision down. After a
// failure, a member votes again, or sends the decision to its new parent if it has it.
//
// A vote counts only if its sender excludes the same members as its receiver. So a decision has the votes of all members that it does not
// exclude, and a member that knows a decision sends it instead of a vote: the remaining members cannot decide anew. If all members that know
// a decision fail, the others decide without them.
//
// A failure detector may be wrong, for example if one pair of hosts is disconnected. Members that cannot communicate must not wait for each
// other, nor decide twice. Therefore each member excludes whom its detector reports, and these rules make the sets equal:
//   - A member that a lower member suspects, or that has ended for certain, is excluded by all (`confirmed_`). Members that disagree send
//     each other these sets (BallotKind::exclusions).
//   - The suspicion of a lower member is not followed, because both would lose the other. It is reported to the suspected member
//     (BallotKind::suspicion). If this member lives, it excludes the one that suspects it; if not, all detectors report it in the end.
//   - A member that is excluded learns this from the others. It does not vote any more, and waits for their decision.
//   - A member that withdraws excludes itself, and sends this to all. So nobody waits for a vote of it that takes a later failure into account.
// The one that suspects may be the only one that notices: a member that cannot send a decision to a suspected one asks others for it.
// Two members without a third that reaches both decide each for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace starling::collective {

/// The content of a vote, merged from any number of members, and of a decision.
struct Ballot {
    /// Sets of members: 64 members per word.
    using Members = std::vector<uint64_t>;

    int32_t flag = ~0;       ///< bitwise AND of the members' flags
    uint64_t context = 0;    ///< context id for a new communicator; drawn by the root; 0: not decided yet
    Members failed;          ///< members that the sender excludes; in a decision all excluded ones
    Members acknowledged;    ///< intersection of the failures that the members have acknowledged
    uint32_t unsettled = 0;  ///< how many agreements before this one a member has not decided yet; the largest number

    explicit Ballot(int members) : failed(words(members)), acknowledged(words(members), ~uint64_t{0}) {}
    static size_t words(int members) { return (static_cast<size_t>(members) + 63) / 64; }
    static void insert(Members& set, int member) { set[static_cast<size_t>(member) / 64] |= uint64_t{1} << member % 64; }
    static bool contains(const Members& set, int member) { return set[static_cast<size_t>(member) / 64] >> member % 64 & 1; }
    /// Merges the votes of other members, but not their sets of failures.
    void merge(const Ballot& other);
    /// Returns whether all members have acknowledged all failures.
    bool all_acknowledged() const;
};

class Consensus {
  public:
    /// The connection of a consensus to the other members.
    class Outside {
      public:
        virtual ~Outside() = default;
        /// Returns whether this member's failure detector reports a member. Once true, it stays true.
        virtual bool has_failed(int member) const = 0;
        /// Returns whether a reported member has ended for certain, so that every member may rely on the report.
        virtual bool has_ended(int member) const = 0;
        enum class BallotKind : uint8_t {
            vote,
            decision,
            exclusions,  ///< `failed`: members that the sender excludes; `acknowledged`: those of them that all must exclude
            suspicion,   ///< `failed`: a member that suspects the receiver
        };
        virtual void send(int member, BallotKind kind, const Ballot& ballot) = 0;
        /// Draws a context id for a new communicator.
        virtual uint64_t draw_context() = 0;
    };
    using BallotKind = Outside::BallotKind;

    /// `excluded`: members that all exclude from the beginning, because an earlier decision of the group has excluded them.
    Consensus(int members, int me, Outside& outside, const Ballot::Members& excluded);

    /// Adds this member's vote, once. Its set of failures is not used.
    void vote(const Ballot& mine);
    /// Excludes this member, in place of its vote, because it may end before the others decide. All others exclude it, whether or not they
    /// notice its end.
    void withdraw();
    /// Handles a message. Ignores those of failed members.
    void receive(int from, BallotKind kind, const Ballot& ballot);
    /// Continues without the members that have failed since the last call.
    void note_failures();
    /// Excludes these members, because all members exclude them in another agreement of the group.
    void exclude(const Ballot::Members& members);
    /// Returns the members that all members have to exclude.
    const Ballot::Members& confirmed() const { return confirmed_; }

    /// Sends the decision, if there is one, to all living members, because this member is about to leave for good.
    void leave();

    bool decided() const { return decided_; }
    /// Returns whether this member has voted and waits for the decision.
    bool is_waiting() const { return voted_ && !decided_; }
    /// Returns the members for which this one waits: children whose votes are missing, or else the parent.
    std::vector<int> awaited() const;
    /// Returns the decision, or the votes merged so far.
    const Ballot& ballot() const { return sum_; }

  private:
    static constexpr int kNobody = -1;
    bool excludes(int member) const { return Ballot::contains(excluded_, member); }
    int parent() const;
    template <class Visit>
    bool each_remaining_below(int member, Visit visit) const;
    template <class Visit>
    bool each_child(Visit visit) const;
    bool has_matching_vote(int child) const;
    void advance();
    void vote_to(int member);
    void end_excluded();
    void collect_exclusions();
    void notify_excluded(const Ballot::Members& before);
    void send_exclusions();
    void send_exclusions(int member);
    void note_suspicions(int from, const Ballot::Members& members);
    void receive_vote(int from, const Ballot& ballot);
    void receive_exclusions(int from, const Ballot& ballot);
    void note_suspicion_of_me(const Ballot::Members& by);
    void decide(const Ballot& decision, int from);
    bool may_wait_for_me(int member) const;
    void request_forwarding(const Ballot::Members& before);
    void answer_with_decision(int from, const Ballot::Members& suspects);
    void send_decision_up(int from);

    Outside& outside_;
    const int n_, me_;
    Ballot sum_;
    Ballot::Members excluded_;              ///< members without which this one continues
    Ballot::Members confirmed_;             ///< subset of `excluded_`: members that all have to exclude; may include this one
    Ballot::Members asking_;                ///< members from which something has arrived: they get the decision
    std::map<int, Ballot::Members> votes_;  ///< members whose votes have arrived, with the newest sets that they exclude
    std::map<int, std::pair<Ballot::Members, Ballot::Members>> sent_sets_;  ///< `excluded_` and `confirmed_` as sent to members
    int sent_to_ = kNobody;                                                 ///< parent that got this member's vote or decision
    Ballot::Members sent_excluding_;                                        ///< `excluded_` in the last vote that was sent
    bool voted_ = false, decided_ = false;
    bool is_alone_ = false;  ///< whether the decision is that of this member only, which has been excluded
};

}  // namespace starling::collective
