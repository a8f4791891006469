// Agreements in shared memory, in all interleavings of their steps, with deaths and the news of them between any two steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "collective/survivors/memory_consensus.h"

namespace starling::collective {
namespace {

constexpr int kMost = 4, kRounds = 3;

/// The next step of a member in its current agreement.
enum class Step : uint8_t { check, add_flag, arrive, store_result, clear_votes, decide, wait, read, finished };

/// How an agreement has ended for a member: not yet, by messages, or in memory with a flag.
struct Outcome {
    enum Way : uint8_t { none, by_messages, in_memory } way = none;
    int32_t flag = 0;
    auto operator<=>(const Outcome&) const = default;
};

struct Member {
    Step step = Step::check;
    bool dead = false, knows_of_death = false;
    uint8_t round = 0;
    std::array<Outcome, kRounds> outcomes{};
    auto operator<=>(const Member&) const = default;
};

/// The content of the words, and of all members.
struct World {
    uint32_t arrived = 0, cleared = 0, result_cleared = 0;
    uint64_t state = 0;
    std::array<Member, kMost> members{};
    auto operator<=>(const World&) const = default;
};

/// Explores every order of the members' steps. `deaths`: the most members that die.
class Explorer {
  public:
    Explorer(int members, int rounds, int deaths) : n_(members), rounds_(rounds), deaths_(deaths) {}

    /// Returns the number of different worlds.
    size_t explore() {
        std::vector<World> open{World{}};
        seen_.insert(open.back());
        while (!open.empty() && !testing::Test::HasFailure()) {
            const World world = open.back();
            open.pop_back();
            check(world);
            bool any = false;
            for (int m = 0; m < n_; ++m) any |= visit_successors(world, m, open);
            if (!any) expect_all_ended(world);
        }
        return seen_.size();
    }
    size_t decided_in_memory = 0, by_messages = 0;  ///< worlds at the end with these outcomes of the first agreement

  private:
    static int32_t flag_of(int member, int round) { return ~(1 << (member + kMost * round)); }
    int32_t expected(int round) const {
        int32_t all = ~0;
        for (int m = 0; m < n_; ++m) all &= flag_of(m, round);
        return all;
    }

    static void load(const World& world, link::AgreementWords& words) {
        words.arrived.store(world.arrived);
        words.cleared.store(world.cleared);
        words.result_cleared.store(world.result_cleared);
        words.state.store(world.state);
    }
    static void save(const link::AgreementWords& words, World& world) {
        world.arrived = words.arrived.load();
        world.cleared = words.cleared.load();
        world.result_cleared = words.result_cleared.load();
        world.state = words.state.load();
    }

    void end_round(Member& member, Outcome outcome) const {
        member.outcomes[member.round] = outcome;
        member.step = ++member.round == rounds_ ? Step::finished : Step::check;
    }

    /// Takes a member's next step; returns false if it can only wait.
    bool advance(Member& member, int me, MemoryConsensus& words) const {
        switch (member.step) {
            case Step::check:
                if (member.knows_of_death) words.close();
                member.step = words.closed() ? Step::wait : Step::add_flag;
                return true;
            case Step::add_flag:
                words.add_flag(flag_of(me, member.round));
                member.step = Step::arrive;
                return true;
            case Step::arrive:
                member.step = words.arrive() ? Step::store_result : Step::wait;
                return true;
            case Step::store_result:
                words.store_result(0);
                member.step = Step::clear_votes;
                return true;
            case Step::clear_votes:
                words.clear_votes();
                member.step = Step::decide;
                return true;
            case Step::decide:
                words.decide(member.round);
                member.step = Step::wait;
                return true;
            case Step::wait:
                if (!words.decided(member.round) && !words.closed()) return false;
                member.step = Step::read;
                return true;
            case Step::read:
                if (words.decided(member.round))
                    end_round(member, {Outcome::in_memory, words.flag()});
                else
                    end_round(member, {Outcome::by_messages});
                return true;
            case Step::finished:
                return false;
        }
        return false;
    }

    bool visit_successors(const World& world, int m, std::vector<World>& open) {
        const Member& before = world.members[static_cast<size_t>(m)];
        if (before.dead) return false;
        const auto dead = std::count_if(world.members.begin(), world.members.end(), [](const Member& one) { return one.dead; });
        const auto visit = [&](const auto& change) {
            World next = world;
            load(world, *words_);
            MemoryConsensus words(*words_, n_);
            if (!change(next.members[static_cast<size_t>(m)], words)) return false;
            save(*words_, next);
            if (seen_.insert(next).second) open.push_back(next);
            return true;
        };
        bool any = visit([&](Member& member, MemoryConsensus& words) { return advance(member, m, words); });
        if (dead > 0 && !before.knows_of_death && before.step != Step::finished)
            any |= visit([](Member& member, MemoryConsensus& words) {
                member.knows_of_death = true;
                words.close();
                return true;
            });
        // A death alone does not let the others go on, so it is no reason to go on here.
        if (dead < deaths_) visit([](Member& member, MemoryConsensus&) { return member.dead = true; });
        return any;
    }

    /// Each agreement ends in one way, with one flag, on all members, also on those that die later.
    void check(const World& world) const {
        for (size_t round = 0; round < static_cast<size_t>(rounds_); ++round) {
            Outcome first;
            for (int m = 0; m < n_; ++m) {
                const Outcome& outcome = world.members[static_cast<size_t>(m)].outcomes[round];
                if (outcome.way == Outcome::none) continue;
                if (first.way == Outcome::none) first = outcome;
                ASSERT_EQ(outcome.way, first.way) << "member " << m << ", round " << round;
                if (outcome.way != Outcome::in_memory) continue;
                ASSERT_EQ(outcome.flag, expected(static_cast<int>(round)));
            }
        }
    }

    void expect_all_ended(const World& world) {
        for (int m = 0; m < n_; ++m) {
            const Member& member = world.members[static_cast<size_t>(m)];
            if (member.dead) continue;
            ASSERT_EQ(member.step, Step::finished) << "member " << m << " waits for ever";
            ++(member.outcomes[0].way == Outcome::in_memory ? decided_in_memory : by_messages);
        }
    }

    const int n_, rounds_, deaths_;
    std::set<World> seen_;
    std::unique_ptr<link::AgreementWords> words_ = std::make_unique<link::AgreementWords>();
};

TEST(MemoryConsensus, DecidesEveryAgreementInMemoryWithoutFailures) {
    for (int members = 2; members <= kMost; ++members) {
        Explorer explorer(members, members < kMost ? kRounds : 2, 0);
        EXPECT_GT(explorer.explore(), 10u);
        EXPECT_EQ(explorer.by_messages, 0u);
        EXPECT_GT(explorer.decided_in_memory, 0u);
    }
}

TEST(MemoryConsensus, EndsInOneWayOnAllMembersWhoeverDiesBetweenAnySteps) {
    for (const auto& [members, rounds, deaths] : {std::array{2, 3, 2}, {3, 2, 1}, {3, 2, 3}, {4, 1, 2}}) {
        Explorer explorer(members, rounds, deaths);
        EXPECT_GT(explorer.explore(), 100u);
        EXPECT_GT(explorer.by_messages, 0u);
        EXPECT_GT(explorer.decided_in_memory, 0u);
    }
}

TEST(MemoryConsensus, CountsAgreementsBeyondTheWrapOfTheirNumbers) {
    const auto words = std::make_unique<link::AgreementWords>();
    words->state.store(uint64_t{0xffffffff} << 1);
    MemoryConsensus one(*words, 1);
    for (const uint32_t number : {0xffffffffu, 0u, 1u}) {
        EXPECT_FALSE(one.decided(number));
        one.add_flag(static_cast<int32_t>(number));
        ASSERT_TRUE(one.arrive());
        one.store_result(number + 7);
        one.clear_votes();
        ASSERT_TRUE(one.decide(number));
        EXPECT_TRUE(one.decided(number));
        EXPECT_EQ(one.flag(), static_cast<int32_t>(number));
        EXPECT_EQ(one.context(), number + 7);
    }
    EXPECT_FALSE(one.closed());
}

}  // namespace
}  // namespace starling::collective
