// Simulates a core, and checks how the backoff policy of blocking waits treats neighbors (ranks of the job on this core) and strangers
// (other programs): the time that each gets, and the cost.
#include "progress/backoff_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace starling::progress {
namespace {

using Act = Waiting::Act;

constexpr uint64_t kUs = 1000, kMs = 1'000'000;
constexpr uint32_t kPollsAlone = 800;
constexpr Waiting::BackoffSettings kAdaptive{true, 2 * kMs}, kPoll{false, 2 * kMs}, kWithOtherHosts{true, 2 * kMs, true};

/// A core with the waiting process, neighbors (other ranks of the job, which also wait), and strangers (other programs, which compute).
struct Core {
    bool neighbour = false;
    bool strangers = false;
    bool core_free = false;  ///< whether another core is free, and a move succeeds
    uint32_t cpu = 0;
    bool told = false;  ///< whether another process of the job has reported strangers on this core
    bool machine_short = false;
    /// If machine_short: whether a waiting process that the policy cannot see uses the core after a yield.
    bool unseen = false;
    int asked = 0;  ///< number of times that the policy checked for a shortage of cores
    uint64_t now = 1000 * kMs;
    int yields = 0, sleeps = 0, moves = 0;
    uint64_t given_away = 0;  ///< time in ns that yields gave to strangers
    CoreWatch watch;

    /// Does one poll of a wait and then the action that the policy chooses. Time advances by `poll_ns`.
    Act step(Waiting& wait, const Waiting::BackoffSettings& terms, uint64_t poll_ns = 50) {
        now += poll_ns;
        if (!wait.is_time_to_check(kPollsAlone)) return Act::spin;
        const bool asks = wait.should_check_cores(now);
        asked += asks;
        const Act act = wait.next({now, neighbour, cpu, told, asks && machine_short}, terms);
        if (act == Act::yield) {
            const uint64_t began = now;
            // A yield gives the core to the process that has run least: to a stranger, if there is one.
            now += strangers ? 4 * kMs : neighbour || unseen ? 3 * kUs : 300;
            if (strangers) given_away += now - began;
            ++yields;
            wait.yielded(began, now);
        } else if (act == Act::move) {
            ++moves;
            now += 20 * kUs;
            wait.moved(core_free, now);
            if (core_free) neighbour = false;
        } else if (act == Act::sleep) {
            ++sleeps;
            now += 100 * kUs;
            wait.slept(now);
        }
        return act;
    }

    /// Waits for `ns` nanoseconds.
    void wait_for(uint64_t ns, const Waiting::BackoffSettings& terms, bool later = false) {
        Waiting wait(watch, later);
        for (const uint64_t until = now + ns; now < until;) step(wait, terms);
    }
};

TEST(BackoffPolicy, ProcessesThatStartTogetherAreNotStrangers) {
    Core core;
    core.neighbour = core.strangers = true;  // a busy neighbor that is not visible yet looks like a stranger
    core.watch.begin(core.now);
    core.wait_for(CoreWatch::kStartNs - 5 * kMs, kPoll);
    EXPECT_FALSE(core.watch.contested(core.now));
    core.wait_for(50 * kMs, kPoll);
    EXPECT_TRUE(core.watch.contested(core.now)) << "a process that still takes time slices is a stranger";
}

TEST(BackoffPolicy, SpinsAloneThenBacksOffToSleep) {
    Core core;
    Waiting wait(core.watch, false);
    const uint64_t began = core.now;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + 10 * kMs);
    EXPECT_EQ(core.yields, 0);
    EXPECT_GE(core.now - began, kAdaptive.spin_ns);
    EXPECT_LE(core.now - began, kAdaptive.spin_ns + 100 * kUs);
    EXPECT_EQ(core.step(wait, kAdaptive), Act::sleep) << "after one more look";
    // After a spurious wake the policy polls a few times and prepares to sleep again.
    for (uint32_t i = 0; i + 1 < Waiting::kPollsPerLook; ++i) EXPECT_EQ(core.step(wait, kAdaptive), Act::spin);
    EXPECT_EQ(core.step(wait, kAdaptive), Act::announce);
}

// Another process may be queued for this core, and may be the peer that this one waits for. Only the check for spare cores shows that.
TEST(BackoffPolicy, YieldsIfTheMachineHasNoSpareCore) {
    Core core;
    core.machine_short = core.unseen = true;
    uint64_t began = core.now;
    Waiting first(core.watch, false);
    while (core.step(first, kAdaptive) != Act::yield) ASSERT_LT(core.now, began + 10 * kMs);
    EXPECT_GE(core.now - began, Waiting::kAskNs);
    EXPECT_LT(core.now - began, 200 * kUs);
    // Later waits remember the lack of spare cores, as long as it lasts.
    for (int i = 0; i < 1000; ++i) {
        began = core.now;
        Waiting wait(core.watch, false);
        while (core.step(wait, kAdaptive) != Act::yield) ASSERT_LT(core.now, began + Waiting::kAskNs);
        core.wait_for(100 * kUs, kAdaptive);
    }
    core.machine_short = false;
    core.now += CoreWatch::kSuspicionNs;
    const int yields = core.yields;
    core.wait_for(1000 * kMs, kAdaptive);
    EXPECT_EQ(core.yields, yields);
    EXPECT_EQ(core.moves, 0) << "a move needs a visible neighbor";
}

// The kernel divides cores between groups of processes (sessions, containers). A yield in one group gives nothing to another.
TEST(BackoffPolicy, SleepsIfTheMachineHasNoSpareCoreAndYieldsAreInVain) {
    Core core;
    core.machine_short = true;
    core.wait_for(1 * kMs, kWithOtherHosts);
    EXPECT_EQ(core.yields, static_cast<int>(CoreWatch::kVainYields));
    EXPECT_GT(core.sleeps, 0);
    // The policy tries a yield now and then, but not more often than allowed.
    const int yields = core.yields;
    const uint64_t began = core.now;
    while (core.now < began + 1000 * kMs) core.wait_for(200 * kUs, kWithOtherHosts);
    EXPECT_GT(core.yields, yields);
    EXPECT_LE(core.yields - yields, static_cast<int>(CoreWatch::kVainYields * (1000 * kMs / CoreWatch::kVainNs)));
    // Now there is a process that benefits from yields.
    core.unseen = true;
    core.wait_for(2 * CoreWatch::kVainNs, kWithOtherHosts);
    const int sleeps = core.sleeps;
    for (int i = 0; i < 1000; ++i) core.wait_for(200 * kUs, kWithOtherHosts);
    EXPECT_EQ(core.sleeps, sleeps);
    // If the settings forbid to sleep, the wait yields as before.
    Core poll;
    poll.machine_short = true;
    poll.wait_for(100 * kMs, kPoll);
    EXPECT_EQ(poll.sleeps, 0);
    EXPECT_GT(poll.yields, 100);
}

// All peers are in the tables of this host, so the threads that wait for cores belong to other programs.
TEST(BackoffPolicy, VainYieldsRefuteTheSuspicionIfAllPeersAreListed) {
    Core core;
    core.machine_short = true;
    core.wait_for(1 * kMs, kAdaptive);
    EXPECT_EQ(core.yields, static_cast<int>(CoreWatch::kVainYields));
    EXPECT_GT(core.sleeps, 0) << "a long wait leaves the core to the threads that wait for it";
    EXPECT_TRUE(core.watch.suspects_neighbour(core.now));
    EXPECT_FALSE(core.watch.crowded()) << "messages would take the paths for ranks that share a core";
    // A message takes longer than the polls of a crowded core, and is received without a sleep.
    const int yields = core.yields, sleeps = core.sleeps;
    for (int i = 0; i < 500; ++i) core.wait_for(30 * kUs, kAdaptive);
    EXPECT_EQ(core.sleeps, sleeps);
    EXPECT_EQ(core.yields, yields);
    Waiting wait(core.watch, false);
    const uint64_t began = core.now;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + kMs);
    EXPECT_GE(core.now - began, Waiting::kContestedSpinNs);
    EXPECT_LE(core.now - began, 50 * kPollsAlone + Waiting::kContestedSpinNs + 10 * kUs);
    // A peer on another host may be in another container of this machine, and need this very core.
    Core remote;
    remote.machine_short = true;
    remote.wait_for(1 * kMs, kWithOtherHosts);
    EXPECT_TRUE(remote.watch.crowded());
    const int before = remote.sleeps;
    for (int i = 0; i < 100; ++i) remote.wait_for(30 * kUs, kWithOtherHosts);
    EXPECT_GE(remote.sleeps, before + 100);
}

// The processes that lack cores are other programs. The policy notices that, as it notices strangers beside neighbors.
TEST(BackoffPolicy, StrangersGetLittleIfTheMachineHasNoSpareCore) {
    Core core;
    core.machine_short = core.strangers = true;
    const uint64_t began = core.now;
    while (core.now < began + 20'000 * kMs) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_GT(core.yields, 2);
    EXPECT_LT(core.given_away, (core.now - began) / 50);
}

TEST(BackoffPolicy, ChecksForSpareCoresOnlyNowAndThen) {
    Core core;
    Waiting wait(core.watch, false);
    while (core.step(wait, kAdaptive) != Act::announce) {}
    EXPECT_LE(core.asked, static_cast<int>(kAdaptive.spin_ns / Waiting::kAskNs)) << "each check is a system call";
    EXPECT_GT(core.asked, 10);
}

TEST(BackoffPolicy, NeverYieldsToAStranger) {
    for (const Waiting::BackoffSettings& terms : {kAdaptive, kPoll}) {
        Core core;
        core.strangers = true;
        for (int i = 0; i < 1000; ++i) core.wait_for(3 * kMs, terms);
        EXPECT_EQ(core.yields, 0);
        EXPECT_EQ(core.sleeps > 0, terms.may_sleep);
    }
}

TEST(BackoffPolicy, YieldsToANeighborAtEveryPollOnceThatHelps) {
    Core core;
    core.neighbour = true;
    core.wait_for(kMs, kAdaptive);
    ASSERT_TRUE(core.watch.crowded());
    Waiting wait(core.watch, false);
    for (uint32_t i = 0; i + 1 < Waiting::kPollsCrowded; ++i) EXPECT_EQ(core.step(wait, kAdaptive), Act::spin);
    for (int i = 0; i < 100; ++i) {
        const Act act = core.step(wait, kAdaptive);
        EXPECT_TRUE(act == Act::yield || act == Act::move);
    }
    // The neighbor has left, so the policy spins again after its next check.
    core.neighbour = false;
    EXPECT_EQ(core.step(wait, kAdaptive), Act::spin);
    EXPECT_FALSE(core.watch.crowded());
}

TEST(BackoffPolicy, DoesNotYieldToANeighborThatSleepsOrIsElsewhere) {
    Core core;
    core.wait_for(100 * kMs, kPoll);
    EXPECT_EQ(core.yields, 0);
}

// A yield meant for a neighbor gives the core to a stranger beside it. The policy notices this once, and then yields ever more rarely.
TEST(BackoffPolicy, StrangersBesideNeighborsGainLittleFromYields) {
    Core core;
    core.neighbour = core.strangers = true;
    const uint64_t began = core.now;
    while (core.now < began + 20'000 * kMs) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_LT(core.given_away, (core.now - began) / 50);
    EXPECT_GT(core.sleeps, 10000) << "the neighbor gets the core because this process sleeps";
    // The stranger has left, so the neighbors soon yield to each other again.
    core.strangers = false;
    core.wait_for(2 * CoreWatch::kLongestContestNs, kAdaptive);
    const int sleeps = core.sleeps;
    for (int i = 0; i < 100; ++i) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_EQ(core.sleeps, sleeps);
}

TEST(BackoffPolicy, AWaitThatMayNotSleepAlwaysYieldsToANeighbor) {
    Core core;
    core.neighbour = core.strangers = true;
    core.wait_for(1000 * kMs, kPoll);
    EXPECT_GT(core.yields, 100);
    EXPECT_EQ(core.sleeps, 0);
}

// The core was taken from this process between two polls. It then sleeps soon, so that the scheduler owes it time when it is woken.
TEST(BackoffPolicy, SpinsShorterOnAContestedCore) {
    Core core;
    Waiting wait(core.watch, false);
    uint64_t began = core.now;
    while (wait.since() == 0) core.step(wait, kAdaptive);
    core.now += 4 * kMs;
    core.step(wait, kAdaptive);
    for (uint32_t i = 0; i < Waiting::kPollsPerLook; ++i) core.step(wait, kAdaptive);
    EXPECT_FALSE(core.watch.contested(core.now)) << "a single lost time slice is not evidence of strangers";
    wait.reset();
    began = core.now;
    while (wait.since() == 0) core.step(wait, kAdaptive);
    core.now += 4 * kMs;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + 10 * kMs);
    EXPECT_LT(core.now - began, 4 * kMs + 200 * kUs);
    wait.reset();
    began = core.now;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + 10 * kMs);
    EXPECT_LT(core.now - began, 200 * kUs);
    // Without further losses the spin time grows back.
    core.now += 100 * kMs;
    wait.reset();
    began = core.now;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + 10 * kMs);
    EXPECT_GE(core.now - began, kAdaptive.spin_ns);
}

TEST(BackoffPolicy, MovesAwayFromANeighborSoonAndOnce) {
    Core core;
    core.neighbour = core.core_free = true;
    const uint64_t began = core.now;
    for (int i = 0; i < 1000 && core.neighbour; ++i) core.wait_for(5 * kUs, kAdaptive);
    // The short waits, as for single messages, end with a move to the free core. Longer waits cause no second move.
    core.wait_for(kMs, kAdaptive);
    EXPECT_EQ(core.moves, 1);
    EXPECT_LT(core.now - began, 10 * kMs);
    core.wait_for(1000 * kMs, kAdaptive);
    EXPECT_EQ(core.moves, 1);
}

// Two ranks on one core beside a stranger sleep for each other. On another core each would share only with strangers, even if that core is
// busy. The kernel brings one back now and then, and it moves again.
TEST(BackoffPolicy, MovesAwayFromANeighborBesideStrangersToo) {
    Core core;
    core.neighbour = core.core_free = core.strangers = true;
    const uint64_t began = core.now;
    int moves = 0;
    for (int day = 0; day < 50; ++day) {
        core.neighbour = true;
        const uint64_t back = core.now;
        while (core.neighbour && core.now < back + 100 * kMs) core.wait_for(100 * kUs, kAdaptive);
        ASSERT_FALSE(core.neighbour) << "after " << (core.now - back) / kUs << " us on day " << day;
        EXPECT_EQ(core.moves, ++moves);
        core.wait_for(20 * kMs, kAdaptive);
    }
    EXPECT_LT(core.given_away, (core.now - began) / 25);
}

// The kernel moves this process to a core without strangers: there, neighbors yield to each other at once. Back on the old core they sleep
// again.
TEST(BackoffPolicy, ContentionIsRememberedPerCore) {
    Core core;
    core.neighbour = core.strangers = true;
    const uint64_t began = core.now;
    while (!core.watch.contested(core.now + 100 * kMs)) {
        core.wait_for(kMs, kAdaptive);
        ASSERT_LT(core.now, began + 10'000 * kMs);
    }
    core.cpu = 1;
    core.strangers = false;
    const int sleeps = core.sleeps, yields = core.yields;
    for (int i = 0; i < 100; ++i) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_EQ(core.sleeps, sleeps);
    EXPECT_GT(core.yields, yields + 100);
    core.cpu = 0;
    core.strangers = true;
    core.given_away = 0;
    for (int i = 0; i < 100; ++i) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_GT(core.sleeps, sleeps + 50);
    EXPECT_LE(core.given_away, 4 * kMs);
}

TEST(BackoffPolicy, ReportsOnlyPersistentStrangersToNeighbors) {
    Core core;
    core.watch.see(0, true, core.now);
    core.watch.lost(2 * kMs, core.now);
    core.watch.lost(2 * kMs, core.now += 10 * kMs);
    EXPECT_TRUE(core.watch.contested(core.now));
    EXPECT_FALSE(core.watch.is_sure_of_foreign_load(core.now)) << "neighbours may have computed";
    core.watch.lost(4 * kMs, core.now += 30 * kMs);
    EXPECT_TRUE(core.watch.is_sure_of_foreign_load(core.now));
    EXPECT_FALSE(core.watch.is_sure_of_foreign_load(core.now + 2 * CoreWatch::kFirstContestNs))
        << "after that time without strangers the core no longer counts as contested";
}

// All processes on a core learn of strangers that one of them noticed, and forget them unless confirmed. Otherwise the report would
// circulate forever.
TEST(BackoffPolicy, StrangersReportedByANeighborGetNothing) {
    Core core;
    core.neighbour = core.strangers = core.told = true;
    for (int i = 0; i < 100; ++i) core.wait_for(200 * kUs, kAdaptive);
    EXPECT_EQ(core.yields, 0);
    EXPECT_GT(core.sleeps, 50);
    EXPECT_FALSE(core.watch.is_sure_of_foreign_load(core.now));
    core.told = core.strangers = false;
    core.now += CoreWatch::kFirstContestNs;
    core.wait_for(200 * kUs, kAdaptive);
    EXPECT_GT(core.yields, 10);
}

// A migration between cores may take as long as a lost time slice, but is no evidence of strangers.
TEST(BackoffPolicy, AMigrationIsNoLossOfTheCore) {
    Core core;
    Waiting wait(core.watch, false);
    while (wait.since() == 0) core.step(wait, kPoll);
    for (int i = 0; i < 100; ++i) {
        core.now += 4 * kMs;
        core.cpu = 1 - core.cpu;
        for (uint32_t poll = 0; poll < 2 * Waiting::kPollsPerLook; ++poll) core.step(wait, kPoll);
        ASSERT_FALSE(core.watch.contested(core.now));
    }
}

// More processes than cores: an occasional search for an emptier core costs next to nothing.
TEST(BackoffPolicy, TriesToMoveWithBackoff) {
    Core core;
    core.neighbour = true;
    for (int i = 0; i < 100'000; ++i) core.wait_for(100 * kUs, kAdaptive);
    EXPECT_GT(core.moves, 5);
    EXPECT_LT(core.moves, 20);
}

// Time between waits and time asleep are no evidence of strangers.
TEST(BackoffPolicy, ComputingAndSleepingAreNotLosses) {
    Core core;
    Waiting wait(core.watch, false);
    for (int i = 0; i < 100; ++i) {
        while (core.step(wait, kAdaptive) != Act::sleep) {}
        wait.reset();
        core.now += 10 * kMs;
        EXPECT_FALSE(core.watch.contested(core.now));
    }
}

TEST(BackoffPolicy, AWaitForALateEventSleepsWithoutYielding) {
    Core core;
    core.neighbour = true;
    Waiting wait(core.watch, true);
    const uint64_t began = core.now;
    while (core.step(wait, kAdaptive) != Act::announce) ASSERT_LT(core.now, began + kMs);
    EXPECT_EQ(core.yields, 0);
    EXPECT_GE(core.now - began, 50 * kPollsAlone * Waiting::kPatience);
}

// Invariants: a sleep only after an announcement, and only if allowed; a yield only to a neighbor. Every wait that may sleep does so within
// its terms, plus the time taken from it.
TEST(BackoffPolicy, InvariantsHoldUnderRandomLoad) {
    std::mt19937 random(7);
    for (int run = 0; run < 200; ++run) {
        Core core;
        const bool may_sleep = random() % 4 != 0;
        const Waiting::BackoffSettings terms{may_sleep, random() % 3 * kMs};
        Waiting wait(core.watch, random() % 8 == 0);
        Act before = Act::spin;
        uint64_t quiet = 0;  ///< time in ns spun since the last sleep, yield or loss
        for (int i = 0; i < 20000; ++i) {
            if (random() % 500 == 0) core.neighbour = random() % 2;
            if (random() % 1000 == 0) core.strangers = random() % 2;
            if (core.strangers && random() % 5000 == 0) core.now += 4 * kMs;
            if (random() % 3000 == 0) {
                wait.reset();
                before = Act::spin;
                quiet = 0;
            }
            const uint64_t from = core.now;
            const Act act = core.step(wait, terms);
            quiet = act == Act::spin ? quiet + core.now - from : 0;
            ASSERT_EQ(act == Act::sleep, before == Act::announce);
            ASSERT_TRUE(may_sleep || (act != Act::sleep && act != Act::announce));
            ASSERT_TRUE(core.neighbour || (act != Act::yield && act != Act::move));
            ASSERT_TRUE(!may_sleep || quiet < terms.spin_ns + 200 * kUs) << quiet;
            before = act;
        }
    }
}

}  // namespace
}  // namespace starling::progress
