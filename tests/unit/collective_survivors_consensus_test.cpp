// Runs agreements with random orders of messages and random failures: a member may fail between any two of its sends. In some of them
// failure detectors are wrong: pairs of living members regard each other as failed.
#include "collective/survivors/consensus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace starling::collective {
namespace {

using BallotKind = Consensus::BallotKind;

/// A group whose members exchange messages in memory. Messages of a pair arrive in order; each member learns of a failure on its own.
class World {
  public:
    World(int members, unsigned seed) : n_(members), random_(seed) {
        for (int m = 0; m < n_; ++m) members_.push_back(std::make_unique<Member>(*this, m));
        const int doomed = pick(n_);
        for (int i = 0; i < doomed; ++i) lives(pick(n_)) = pick(3 * n_);
        lives(pick(n_)) = std::nullopt;  // at least one member lives
    }
    /// A world in which `pairs` pairs of members lose their connection, and at most `most_doomed` members fail. If it is one pair, only one of
    /// its members may notice this.
    World(int members, unsigned seed, int pairs, int most_doomed) : n_(members), random_(seed) {
        for (int m = 0; m < n_; ++m) members_.push_back(std::make_unique<Member>(*this, m));
        const int doomed = std::min(pick(n_), most_doomed);
        for (int i = 0; i < doomed; ++i) lives(pick(n_)) = pick(3 * n_);
        for (int i = 0; i < pairs; ++i)
            if (const int a = pick(n_), b = pick(n_); a < b) wrong_.push_back({a, b, pairs == 1 ? 1 + pick(3) : 3});
    }
    /// Lets some members withdraw when they call, and leave at once.
    void let_withdraw() {
        for (const auto& one : members_) one->withdraws = pick(3) == 0;
    }
    /// Lets some members, but not all, finalize instead of calling.
    void let_finalize() {
        const int stays = pick(n_);
        for (const auto& one : members_) one->is_absent = one->left = one->me != stays && pick(3) == 0;
        lives(stays) = std::nullopt;
    }
    /// Returns whether no living member reaches both members of a pair, so that each of them decides for itself.
    bool splits() {
        for (const auto& [a, b, sides] : wrong_) {
            bool has_witness = !alive(a) || !alive(b);
            for (int m = 0; m < n_; ++m) has_witness |= m != a && m != b && alive(m) && reaches(a, m) && reaches(b, m);
            if (!has_witness) return true;
        }
        return false;
    }

    /// Runs until no message or news is left.
    void run() {
        std::vector<int> callers;
        for (int m = 0; m < n_; ++m)
            if (!member(m).is_absent) callers.push_back(m);
        std::shuffle(callers.begin(), callers.end(), random_);
        for (;;) {
            const int what = pick(4);
            if (what == 2 && pick(3) == 0 && disconnect()) continue;
            if (what == 3 && pick(3) == 0 && exclude_finalized()) continue;
            if (what == 0 && !callers.empty()) {
                const int m = callers.back();
                callers.pop_back();
                step(m);
                if (alive(m)) member(m).call();
            } else if (what == 1 && learn()) {
                continue;
            } else if (!deliver() && callers.empty() && !learn() && !disconnect() && !exclude_finalized()) {
                break;
            }
        }
    }

    void check(const std::string& where) {
        const Ballot* decision = nullptr;
        for (const auto& one : members_) {
            if (!alive(one->me) || one->withdraws || one->is_absent) continue;
            if (!one->decision) {
                ADD_FAILURE() << where << ": member " << one->me << " has not decided";
                continue;
            }
            if (is_excluded(one->me)) continue;
            if (!decision) decision = &*one->decision;
            EXPECT_EQ(one->decision->flag, decision->flag) << where;
            EXPECT_EQ(one->decision->failed, decision->failed) << where;
            EXPECT_EQ(one->decision->acknowledged, decision->acknowledged) << where;
            EXPECT_EQ(one->decision->context, decision->context) << where;
        }
        if ((!wrong_.empty() || all_withdraw()) && !decision) return;
        ASSERT_NE(decision, nullptr) << where;
        for (int m = 0; m < n_; ++m) {
            if (alive(m) && !is_excluded(m) && !member(m).withdraws && !member(m).is_absent) {
                EXPECT_FALSE(Ballot::contains(decision->failed, m)) << where << ": " << m << " lives";
                EXPECT_EQ(decision->flag >> m % 31 & 1, 0) << where << ": the flag of " << m << " is missing";
            }
            if (!member(m).voted && (!alive(m) || member(m).withdraws || member(m).is_absent)) {
                EXPECT_TRUE(Ballot::contains(decision->failed, m)) << where << ": " << m << " has not voted";
            }
        }
    }

    /// Checks the decision of the members that lost a connection, too: they either have the same one, or exclude themselves.
    void check_excluded(const std::string& where) {
        const Ballot* decision = nullptr;
        for (const auto& one : members_)
            if (alive(one->me) && one->decision && !is_excluded(one->me)) decision = &*one->decision;
        for (const auto& one : members_) {
            if (!alive(one->me) || !one->decision || !is_excluded(one->me) || !decision) continue;
            EXPECT_EQ(one->decision->flag, decision->flag) << where << ": " << one->me;
            EXPECT_EQ(one->decision->failed, decision->failed) << where << ": " << one->me;
            EXPECT_EQ(one->decision->context, decision->context) << where << ": " << one->me;
        }
    }

  private:
    /// Two members that cannot communicate. `sides`: which of them regards the other as failed, 1 the lower one, 2 the higher one, 3 both.
    struct WrongPair {
        int lower, higher, sides;
    };
    struct Message {
        BallotKind kind;
        Ballot ballot;
    };
    struct Member final : Consensus::Outside {
        Member(World& its_world, int number)
            : world(its_world),
              me(number),
              known(static_cast<size_t>(its_world.n_)),
              consensus(its_world.n_, number, *this, Ballot::Members(Ballot::words(its_world.n_))) {}
        bool has_failed(int other) const override { return known[static_cast<size_t>(other)]; }
        bool has_ended(int other) const override { return has_failed(other) && !world.alive(other) && other % 2; }
        void send(int to, BallotKind kind, const Ballot& ballot) override {
            world.step(me);
            if (world.alive(me) && !known[static_cast<size_t>(to)]) world.sent_[{me, to}].push_back({kind, ballot});
        }
        uint64_t draw_context() override { return static_cast<uint64_t>(me) + 1; }
        void call() {
            if (!withdraws) return vote();
            consensus.withdraw();
            left = world.alive(me);
        }
        void vote() {
            voted = true;
            Ballot mine(world.n_);
            mine.flag = ~(1 << me % 31);
            for (int m = 0; m < world.n_; ++m) {
                if (!has_failed(m)) continue;
                Ballot::insert(mine.failed, m);
            }
            std::fill(mine.acknowledged.begin(), mine.acknowledged.end(), world.pick(2) ? ~uint64_t{0} : 0);
            consensus.vote(mine);
            note();
        }
        /// Notes the decision if the member has lived long enough to return it. The member may then leave, as in MPI_Finalize.
        void note() {
            if (!consensus.decided() || !world.alive(me) || decision) return;
            decision = consensus.ballot();
            if (!voted || world.pick(3) > 0) return;
            consensus.leave();
            left = world.alive(me);
        }
        World& world;
        const int me;
        std::vector<bool> known;
        Consensus consensus;
        std::optional<Ballot> decision;
        std::optional<int> actions_left;  ///< number of actions before the member fails; empty: it lives
        bool withdraws = false;           ///< whether it withdraws instead of voting
        bool is_absent = false;           ///< whether it has finalized instead of calling
        bool voted = false;
        bool left = false;  ///< whether the member ignores everything, although it has not failed
    };

    int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    Member& member(int m) { return *members_[static_cast<size_t>(m)]; }
    std::optional<int>& lives(int m) { return member(m).actions_left; }
    bool alive(int m) { return !lives(m) || *lives(m) > 0; }
    void step(int m) {
        if (lives(m) && *lives(m) > 0) --*lives(m);
    }

    bool all_withdraw() {
        return std::all_of(members_.begin(), members_.end(),
                           [this](const auto& one) { return !alive(one->me) || one->withdraws; });
    }
    bool reaches(int a, int b) const {
        return std::none_of(wrong_.begin(), wrong_.end(), [=](const WrongPair& pair) {
            return pair.lower == std::min(a, b) && pair.higher == std::max(a, b);
        });
    }
    /// Returns whether a member may be excluded although it lives.
    bool is_excluded(int m) const {
        return std::any_of(wrong_.begin(), wrong_.end(), [m](const WrongPair& pair) { return pair.higher == m; });
    }
    /// A member regards another one wrongly as failed: nothing is exchanged between them any more.
    bool disconnect() {
        std::vector<std::pair<int, int>> left;
        const auto collect = [&](int m, int other) {
            if (alive(m) && !member(m).left && !member(m).known[static_cast<size_t>(other)]) left.emplace_back(m, other);
        };
        for (const WrongPair& pair : wrong_) {
            if (pair.sides & 1) collect(pair.lower, pair.higher);
            if (pair.sides & 2) collect(pair.higher, pair.lower);
        }
        if (left.empty()) return false;
        const auto [m, other] = left[static_cast<size_t>(pick(static_cast<int>(left.size())))];
        sent_.erase({other, m});
        member(m).known[static_cast<size_t>(other)] = true;
        member(m).consensus.note_failures();
        member(m).note();
        return true;
    }

    /// A member learns that one for which it waits has finalized, after it has received everything from it.
    bool exclude_finalized() {
        std::vector<std::pair<int, int>> news;
        for (const auto& one : members_)
            for (const int other : one->consensus.awaited())
                if (alive(one->me) && !one->left && alive(other) && member(other).left && !sent_.contains({other, one->me}))
                    news.emplace_back(one->me, other);
        if (news.empty()) return false;
        const auto [m, other] = news[static_cast<size_t>(pick(static_cast<int>(news.size())))];
        Ballot finalized(n_);
        Ballot::insert(finalized.failed, other);
        member(m).consensus.exclude(finalized.failed);
        member(m).note();
        return true;
    }

    bool deliver() {
        if (sent_.empty()) return false;
        auto it = std::next(sent_.begin(), pick(static_cast<int>(sent_.size())));
        const auto [from, to] = it->first;
        const Message message = it->second.front();
        it->second.pop_front();
        if (it->second.empty()) sent_.erase(it);
        if (!alive(to) || member(to).left) return true;
        member(to).consensus.receive(from, message.kind, message.ballot);
        member(to).note();
        return true;
    }
    /// A living member learns of a failure. Everything that the failed member had sent to it is delivered first, or is lost.
    bool learn() {
        std::vector<std::pair<int, int>> news;
        for (int m = 0; m < n_; ++m)
            for (int gone = 0; gone < n_; ++gone)
                if (alive(m) && !member(m).left && !alive(gone) && !member(m).known[static_cast<size_t>(gone)])
                    news.emplace_back(m, gone);
        if (news.empty()) return false;
        const auto [m, gone] = news[static_cast<size_t>(pick(static_cast<int>(news.size())))];
        for (auto it = sent_.find({gone, m}); it != sent_.end(); it = sent_.find({gone, m})) {
            const std::deque<Message> last = std::move(it->second);
            sent_.erase(it);
            if (pick(2) == 0) continue;
            for (const Message& message : last) member(m).consensus.receive(gone, message.kind, message.ballot);
        }
        member(m).note();
        if (!alive(m) || member(m).left) return true;
        member(m).known[static_cast<size_t>(gone)] = true;
        member(m).consensus.note_failures();
        member(m).note();
        return true;
    }

    const int n_;
    std::mt19937 random_;
    std::vector<std::unique_ptr<Member>> members_;
    std::vector<WrongPair> wrong_;
    std::map<std::pair<int, int>, std::deque<Message>> sent_;
};

TEST(Consensus, LivingMembersDecideAlikeWhoeverFails) {
    for (unsigned seed = 1; seed <= 30000; ++seed) {
        World world(static_cast<int>(1 + seed % 23), seed);
        world.run();
        world.check("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
}

TEST(Consensus, LargeGroupsDecideAlikeWhoeverFails) {
    for (unsigned seed = 1; seed <= 100; ++seed) {
        World world(static_cast<int>(60 + seed % 80), seed);
        world.run();
        world.check("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
}

TEST(Consensus, APairThatCannotCommunicateGetsTheDecisionOfTheOthers) {
    for (unsigned seed = 1; seed <= 10000; ++seed) {
        World world(static_cast<int>(3 + seed % 19), seed, 1, 0);
        world.run();
        world.check("seed " + std::to_string(seed));
        world.check_excluded("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
}

TEST(Consensus, PairsThatCannotCommunicateDoNotSplitTheOthers) {
    unsigned checked = 0;
    for (unsigned seed = 1; seed <= 10000; ++seed) {
        World world(static_cast<int>(3 + seed % 19), seed, 1 + static_cast<int>(seed % 4), 3);
        world.run();
        if (world.splits()) continue;
        ++checked;
        world.check("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
    EXPECT_GT(checked, 6000u);
}

TEST(Consensus, MembersThatWithdrawAndEndDoNotKeepTheOthersWaiting) {
    for (unsigned seed = 1; seed <= 30000; ++seed) {
        World world(static_cast<int>(2 + seed % 20), seed);
        world.let_withdraw();
        world.run();
        world.check("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
}

TEST(Consensus, MembersThatHaveFinalizedDoNotKeepTheOthersWaiting) {
    for (unsigned seed = 1; seed <= 30000; ++seed) {
        World world(static_cast<int>(2 + seed % 20), seed);
        world.let_finalize();
        world.run();
        world.check("seed " + std::to_string(seed));
        if (HasFailure()) return;
    }
}

TEST(Consensus, VoteOfOneMemberIsTheDecision) {
    World world(1, 5);
    world.run();
    world.check("alone");
}

}  // namespace
}  // namespace starling::collective
