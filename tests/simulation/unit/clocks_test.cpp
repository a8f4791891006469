// Tests worlds with one clock per process: the order of turns, the bound of the lead, and the sharing of cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "../world.h"

namespace starling::simulation {
namespace {

constexpr uint64_t kBegin = 1'000'000'000, kMillisecond = 1'000'000;

/// Processes that pass `step` ns at a time, and the clocks at which they did.
struct Walk {
    uint64_t switches = 0, hash = 0;
    std::vector<uint64_t> ends;
};

Walk walk(uint64_t lead, const std::vector<uint64_t>& steps, uint64_t until) {
    World world(1);
    world.use_clocks({.lead_ns = lead});
    std::vector<uint64_t> clocks(steps.size(), kBegin);
    for (uint32_t rank = 0; rank < steps.size(); ++rank)
        world.add(rank, rank, [&, rank](Process&) {
            while (world.now < kBegin + until) {
                world.pass(steps[rank]);
                clocks[rank] = world.now;
                for (uint32_t other = 0; other < steps.size(); ++other)
                    if (other != rank && clocks[other] < kBegin + until) {
                        EXPECT_LE(world.now, clocks[other] + steps[other] + lead) << "rank " << rank << " leads too far";
                    }
            }
        });
    EXPECT_EQ(world.run(), "");
    return {world.switches(), world.hash(), clocks};
}

TEST(Clocks, NoProcessLeadsTheSecondByMoreThanTheRulesAllow) {
    for (const uint64_t lead : {uint64_t{0}, uint64_t{100}, uint64_t{5'000}}) {
        const Walk all = walk(lead, {7, 13, 100}, 100'000);
        for (const uint64_t end : all.ends) EXPECT_GE(end, kBegin + 100'000);
    }
}

TEST(Clocks, ALeadSavesTurns) {
    EXPECT_GT(walk(0, {10, 10}, 100'000).switches, 5'000u);
    EXPECT_LT(walk(1'000, {10, 10}, 100'000).switches, 400u);
}

TEST(Clocks, EqualRunsHaveEqualHashes) {
    EXPECT_EQ(walk(50, {7, 13, 100}, 100'000).hash, walk(50, {7, 13, 100}, 100'000).hash);
    EXPECT_NE(walk(50, {7, 13, 100}, 100'000).hash, walk(60, {7, 13, 100}, 100'000).hash);
}

TEST(Clocks, AnEventHappensAtItsTimeBeforeAnyProcessPassesIt) {
    World world(1);
    world.use_clocks({.lead_ns = 1'000});
    uint64_t happened = 0;
    world.at(kBegin + 555, [&] { happened = world.now; });
    for (uint32_t rank = 0; rank < 2; ++rank)
        world.add(rank, rank, [&](Process&) {
            while (world.now < kBegin + 2'000) {
                world.pass(10);
                EXPECT_EQ(happened != 0, world.now >= kBegin + 555);
            }
        });
    EXPECT_EQ(world.run(), "");
    EXPECT_EQ(happened, kBegin + 555);
}

TEST(Clocks, AWokenProcessContinuesAtTheTimeOfItsWakerAndTheWakeUp) {
    World world(1);
    world.use_clocks({.lead_ns = 100, .wake_ns = 3'000});
    uint32_t word = 0;
    uint64_t woke = 0;
    world.add(0, 0, [&](Process& me) {
        me.futex = &word;
        EXPECT_TRUE(world.sleep_until(UINT64_MAX));
        woke = world.now;
    });
    world.add(0, 1, [&](Process&) {
        world.pass(20'000);
        EXPECT_EQ(world.wake_futex(&word), 1);
    });
    EXPECT_EQ(world.run(), "");
    EXPECT_EQ(woke, kBegin + 23'000);
}

TEST(Clocks, WhatOthersHaveWrittenIsPaidWhenTheProcessLooksForIt) {
    World world(1);
    world.use_clocks({});
    world.add(0, 0, [&](Process& me) {
        me.owed = 700;
        world.pass(50);
        EXPECT_EQ(world.now, kBegin + 50) << "a send does not look";
        me.doing = "MPI_Isend";
        world.pass_idly(50);
        EXPECT_EQ(world.now, kBegin + 100) << "nor does a call that only begins an operation";
        me.doing = "MPI_Waitall";
        world.pass_idly(50);
        EXPECT_EQ(world.now, kBegin + 850);
        world.pass_idly(50);
        EXPECT_EQ(world.now, kBegin + 900);
        me.owed = 700;
        world.pass_idle_poll(50, 50);
        EXPECT_EQ(world.now, kBegin + 1'650);
    });
    EXPECT_EQ(world.run(), "");
}

/// Returns when the last of `ranks` processes ends, each of which computes for 10 ms.
uint64_t end_of_computing(uint32_t ranks, const ClockRules& rules) {
    World world(1);
    world.use_clocks(rules);
    uint64_t last = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank)
        world.add(0, rank, [&](Process&) {
            for (int i = 0; i < 1000; ++i) world.pass(10'000);
            last = std::max(last, world.now);
        });
    EXPECT_EQ(world.run(), "");
    return last - kBegin;
}

TEST(Clocks, ProcessesShareTheCoresOfTheirHost) {
    ClockRules rules{.lead_ns = 100, .cores = 4, .slice_ns = 2 * kMillisecond, .switch_ns = 1'000};
    EXPECT_EQ(end_of_computing(4, rules), 10 * kMillisecond);
    rules.cores = 2;
    const uint64_t halves = end_of_computing(4, rules);
    EXPECT_GT(halves, 20 * kMillisecond) << "switches cost nothing";
    EXPECT_LT(halves, 20 * kMillisecond + 20 * rules.switch_ns);
    rules.cores = 1;
    EXPECT_GT(end_of_computing(4, rules), 40 * kMillisecond);
}

TEST(Clocks, AProcessThatYieldsLetsAnotherOneHaveItsCore) {
    World world(1);
    world.use_clocks({.lead_ns = 100, .cores = 1, .slice_ns = 1'000 * kMillisecond, .switch_ns = 500});
    bool ready = false;
    uint64_t seen = 0;
    world.add(0, 0, [&](Process&) {
        while (!ready) world.yield();
        seen = world.now;
    });
    world.add(0, 1, [&](Process&) {
        world.pass(5'000);
        ready = true;
    });
    EXPECT_EQ(world.run(), "");
    EXPECT_GE(seen, kBegin + 5'000 + 2 * 500);
    EXPECT_LT(seen, kBegin + 10'000);
}

/// A process polls until another host's event at `when` changes a flag. Returns when it sees that, and the number of its polls.
std::pair<uint64_t, uint64_t> poll_for_event(uint64_t skip_ns, uint64_t when) {
    World world(1);
    world.use_clocks({.lead_ns = 100, .skip_ns = skip_ns});
    bool happened = false;
    uint64_t polls = 0, seen = 0;
    Process& poller = world.add(0, 0, [&](Process&) {
        for (; !happened; ++polls) world.pass_idle_poll(70, 70);
        seen = world.now;
    });
    world.at(kBegin + when, [&] {
        happened = true;
        world.stir(poller);
    });
    EXPECT_EQ(world.run(), "");
    return {seen, polls};
}

TEST(Clocks, SkippedPollsDoNotChangeWhenAnEventIsSeen) {
    for (const uint64_t when :
         {uint64_t{10}, uint64_t{1'120}, uint64_t{5'000}, uint64_t{70'000}, uint64_t{70'001}, uint64_t{999'999}}) {
        const auto [seen, polls] = poll_for_event(0, when);
        const auto [seen_with_skips, few_polls] = poll_for_event(5'000, when);
        EXPECT_EQ(seen, seen_with_skips) << "event at " << when;
        if (when > 50'000) { EXPECT_LT(10 * few_polls, polls); }
    }
}

TEST(Clocks, AProcessSkipsNoPollsWhileAnotherOneOfItsHostIsActive) {
    World world(1);
    world.use_clocks({.lead_ns = 100, .skip_ns = 5'000});
    bool stored = false;
    uint64_t stored_at = 0, seen = 0;
    world.add(0, 0, [&](Process&) {
        while (!stored) world.pass_idle_poll(70, 70);
        seen = world.now;
    });
    world.add(0, 1, [&](Process&) {
        while (world.now < kBegin + 100'000) world.pass_idle_poll(70, 70);  // both skip polls
        world.pass(300);                                                    // the other process continues its polls
        stored_at = world.now;
        stored = true;
        world.pass(10'000);
    });
    EXPECT_EQ(world.run(), "");
    EXPECT_LE(seen, stored_at + 100 + 70);
}

TEST(Clocks, AKilledProcessFreesItsCore) {
    World world(1);
    world.use_clocks({.lead_ns = 100, .cores = 1, .slice_ns = 1'000 * kMillisecond, .switch_ns = 500});
    Process& first = world.add(0, 0, [&](Process&) {
        for (;;) world.pass(1'000);
    });
    uint64_t ran = 0;
    world.add(0, 1, [&](Process&) { ran = world.now; });
    world.at(kBegin + 50'000, [&] { world.kill(first); });
    EXPECT_EQ(world.run(), "");
    EXPECT_EQ(ran, kBegin + 50'500);
}

}  // namespace
}  // namespace starling::simulation
