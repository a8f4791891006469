// The state table of a multicast group in every order of events up to a length; and small groups in which one fault occurs at every moment.
#include "multicast/group_states.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "multicast_world.h"

namespace starling::multicast::testing {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

constexpr GroupEvent kAll[] = {GroupEvent::want,       GroupEvent::joined,   GroupEvent::refused,
                               GroupEvent::all_answer, GroupEvent::silence,  GroupEvent::unready,
                               GroupEvent::abandoned,  GroupEvent::unwanted, GroupEvent::drained};

bool is_in_network(GroupState state) {
    return state == GroupState::testing || state == GroupState::ready || state == GroupState::leaving;
}

TEST(MulticastGroupStates, IsJoinedInTheNetworkExactlyInTheStatesOfTheTable) {
    std::set<std::pair<GroupState, GroupEvent>> seen;
    std::function<void(GroupState, bool, int)> walk = [&](GroupState state, bool inside, int left) {
        ASSERT_EQ(inside, is_in_network(state)) << name_of(state);
        if (left == 0) return;
        for (const GroupEvent event : kAll) {
            // The network answers a join only in the creating state.
            if (event == GroupEvent::joined && state != GroupState::creating) continue;
            if (event == GroupEvent::refused && state != GroupState::creating) continue;
            const GroupStep next = step(state, event);
            seen.emplace(state, event);
            const bool joins = event == GroupEvent::joined;
            if (next.actions & kLeave) { ASSERT_TRUE(inside) << name_of(state); }
            if (next.actions & kTellReady) { ASSERT_TRUE(state == GroupState::testing && next.next == GroupState::ready); }
            if (next.next == GroupState::ready && state != GroupState::ready) { ASSERT_EQ(event, GroupEvent::all_answer); }
            // A member that leaves by its own decision reports that it is no longer ready.
            const bool own = event == GroupEvent::abandoned || event == GroupEvent::silence || event == GroupEvent::refused;
            if (own && (state == GroupState::testing || state == GroupState::ready) && next.next != state) {
                ASSERT_TRUE(next.actions & kTellUnready);
            }
            walk(next.next, (inside || joins) && !(next.actions & kLeave), left - 1);
        }
    };
    walk(GroupState::absent, false, 7);
    EXPECT_EQ(seen.size(), static_cast<size_t>(kStates * kEvents - 2 * (kStates - 1)));
}

TEST(MulticastGroupStates, EveryStateReachesEveryOther) {
    for (int from = 0; from < kStates; ++from) {
        std::set<GroupState> reached{static_cast<GroupState>(from)};
        for (size_t before = 0; before != reached.size();) {
            before = reached.size();
            for (const GroupState state : std::set<GroupState>(reached))
                for (const GroupEvent event : kAll) reached.insert(step(state, event).next);
        }
        EXPECT_EQ(reached.size(), static_cast<size_t>(kStates)) << name_of(static_cast<GroupState>(from));
    }
}

enum class Trouble { none, second_wish, freed_by_all, freed_by_one, given_up, death, refused_first, late };
constexpr Trouble kTroubles[] = {Trouble::none,     Trouble::second_wish, Trouble::freed_by_all,  Trouble::freed_by_one,
                                 Trouble::given_up, Trouble::death,       Trouble::refused_first, Trouble::late};

void make_trouble(World& world, Trouble trouble, uint32_t who) {
    const auto now = world.now;
    if (world[who].dead) return;
    switch (trouble) {
        case Trouble::none:
        case Trouble::refused_first:
        case Trouble::late:
            return;
        case Trouble::second_wish:
            for (const auto& one : world.all) one->group.apply(GroupEvent::want, now);
            return;
        case Trouble::freed_by_all:
            for (const auto& one : world.all) one->group.apply(GroupEvent::unwanted, now);
            return;
        case Trouble::freed_by_one:
            return world[who].group.apply(GroupEvent::unwanted, now);
        case Trouble::given_up:
            return world[who].group.apply(GroupEvent::abandoned, now);
        case Trouble::death:
            return world.kill(who);
    }
}

bool is_settled(const World& world) {
    for (const auto& one : world.all)
        if (!one->dead && one->group.state() != GroupState::ready && one->group.state() != GroupState::absent) return false;
    return true;
}

// Every fault, at every member, after every step, with each of the first datagrams lost: the group settles, and can be used afterwards.
TEST(MulticastGroupStates, SettlesAfterAnyFaultAtAnyMoment) {
    constexpr uint32_t kMembers = 3, kSteps = 16, kLost = 8;
    uint64_t cases = 0;
    for (const Trouble trouble : kTroubles)
        for (uint32_t who = 0; who < kMembers; ++who)
            for (uint32_t when = 0; when < kSteps; ++when)
                for (uint32_t lost = 0; lost <= kLost; ++lost, ++cases) {
                    World world(kMembers, {}, 1);
                    world.lose = lost;
                    world[who].refuses = trouble == Trouble::refused_first;
                    for (uint32_t i = 0; i < kMembers; ++i)
                        if (trouble != Trouble::late || i != who) world[i].group.apply(GroupEvent::want, world.now);
                    for (uint32_t i = 0; i < when; ++i) world.step();
                    make_trouble(world, trouble, who);
                    world[who].refuses = false;
                    const auto what = [&] {
                        return ::testing::Message() << "trouble " << static_cast<int>(trouble) << " at " << who << " after "
                                                    << when << " steps, datagram " << lost << " lost";
                    };
                    // A late member joins while the test of the group runs. A member that has left ends the test for all.
                    if (trouble == Trouble::late) world[who].group.apply(GroupEvent::want, world.now);
                    ASSERT_TRUE(world.run_until([&] { return is_settled(world); }, 5 * kSecond)) << what();
                    world.run_until([] { return false; }, kSecond);
                    ASSERT_TRUE(is_settled(world)) << what();
                    if (trouble == Trouble::none || trouble == Trouble::second_wish || trouble == Trouble::death) {
                        ASSERT_TRUE(world.all_ready()) << what();
                    }
                    for (const auto& one : world.all)
                        if (!one->dead) { ASSERT_EQ(one->in_network, one->group.state() == GroupState::ready) << what(); }
                    for (int tries = 0; tries < 3 && !world.all_ready(); ++tries) {
                        for (const auto& one : world.all)
                            if (!one->dead) one->group.apply(GroupEvent::want, world.now);
                        world.run_until([&] { return world.all_ready(); }, kSecond);
                    }
                    ASSERT_TRUE(world.all_ready()) << what();
                }
    EXPECT_EQ(cases, std::size(kTroubles) * kMembers * kSteps * (kLost + 1));
}

// Two faults in sequence, at any two members. Examples: the group is freed during its test and wanted again at once; its leader dies and
// the next leader leaves; two members die.
TEST(MulticastGroupStates, SettlesAfterTwoFaults) {
    constexpr uint32_t kMembers = 3, kSteps = 8, kGaps = 6;
    constexpr Trouble kAgain[] = {Trouble::second_wish, Trouble::freed_by_all, Trouble::freed_by_one, Trouble::given_up,
                                  Trouble::death};
    const auto play = [](Trouble first, Trouble second, uint32_t whos, uint32_t when, uint32_t gap) {
        World world(kMembers, {}, 1);
        for (const auto& one : world.all) one->group.apply(GroupEvent::want, world.now);
        for (uint32_t i = 0; i < when; ++i) world.step();
        make_trouble(world, first, whos % kMembers);
        for (uint32_t i = 0; i < gap; ++i) world.step();
        make_trouble(world, second, whos / kMembers);
        if (!world.run_until([&] { return is_settled(world); }, 5 * kSecond)) return false;
        world.run_until([] { return false; }, kSecond);
        for (const auto& one : world.all)
            if (!one->dead && one->in_network != (one->group.state() == GroupState::ready)) return false;
        for (int tries = 0; tries < 3 && !world.all_ready(); ++tries) {
            for (const auto& one : world.all)
                if (!one->dead) one->group.apply(GroupEvent::want, world.now);
            world.run_until([&] { return world.all_ready(); }, kSecond);
        }
        return world.all_ready();
    };
    for (const Trouble first : kAgain)
        for (const Trouble second : kAgain)
            for (uint32_t whos = 0; whos < kMembers * kMembers; ++whos)
                for (uint32_t when = 0; when < kSteps; ++when)
                    for (uint32_t gap = 0; gap < kGaps; ++gap)
                        ASSERT_TRUE(play(first, second, whos, when, gap))
                            << static_cast<int>(first) << " at " << whos % kMembers << " after " << when << " steps, then "
                            << static_cast<int>(second) << " at " << whos / kMembers << " after " << gap;
}

}  // namespace
}  // namespace starling::multicast::testing
