// Consensus: one agreement among the living members of a group, as a state machine without messages of its own.
//
// The members form a binomial tree: the parent of member m is m without its lowest bit. A failed member is skipped: its children belong to
// its nearest living ancestor, or to the lowest living member, which is the root. Each member waits for the votes of its living children,
// merges them with its own and votes to its parent. The root decides and sends the decision down. After a failure, a member whose parent has
// changed votes again, or sends the decision if it has it.
//
// All living members get the same decision. A member that knows a decision sends it up instead of its vote, so a new root that has all votes
// of its living children cannot decide anew. If all members that know a decision fail, the others decide without them. This needs a failure
// detector that only reports processes that have ended. Messages from members that are known to have failed are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::collective {

/// The content of a vote, merged from any number of members, and of a decision.
struct Ballot {
    /// Sets of members: 64 members per word.
    using Members = std::vector<uint64_t>;

    int32_t flag = ~0;       ///< bitwise AND of the members' flags
    uint64_t context = 0;    ///< context id for a new communicator; drawn by the root; 0: not decided yet
    Members failed;          ///< union of the failures that the members know
    Members acknowledged;    ///< intersection of the failures that the members have acknowledged
    uint32_t unsettled = 0;  ///< how many agreements before this one a member has not decided yet; the largest number

    explicit Ballot(int members) : failed(words(members)), acknowledged(words(members), ~uint64_t{0}) {}
    static size_t words(int members) { return (static_cast<size_t>(members) + 63) / 64; }
    static void insert(Members& set, int member) { set[static_cast<size_t>(member) / 64] |= uint64_t{1} << member % 64; }
    static bool contains(const Members& set, int member) { return set[static_cast<size_t>(member) / 64] >> member % 64 & 1; }
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
        /// Returns whether a member is known to have failed. Once true, it stays true.
        virtual bool has_failed(int member) const = 0;
        enum class BallotKind : uint8_t { vote, decision };
        virtual void send(int member, BallotKind kind, const Ballot& ballot) = 0;
        /// Draws a context id for a new communicator.
        virtual uint64_t draw_context() = 0;
    };
    using BallotKind = Outside::BallotKind;

    Consensus(int members, int me, Outside& outside);

    /// Adds this member's vote, once.
    void vote(const Ballot& mine);
    /// Handles a message. Ignores those of failed members.
    void receive(int from, BallotKind kind, const Ballot& ballot);
    /// Continues without the members that have failed since the last call.
    void note_failures();

    /// Sends the decision, if there is one, to all living members, because this member is about to leave for good.
    void leave();

    bool decided() const { return decided_; }
    /// Returns the decision, or the votes merged so far.
    const Ballot& ballot() const { return sum_; }

  private:
    static constexpr int kNobody = -1;
    int parent() const;
    template <class Visit>
    bool each_living_below(int member, Visit visit) const;
    template <class Visit>
    bool each_child(Visit visit) const;
    void advance();
    void decide(const Ballot& decision, int from);

    Outside& outside_;
    const int n_, me_;
    Ballot sum_;
    std::vector<bool> heard_;  ///< members whose votes have arrived; once decided, all that get the decision
    int sent_to_ = kNobody;    ///< parent that got this member's vote or decision
    bool voted_ = false, decided_ = false;
};

}  // namespace starling::collective
