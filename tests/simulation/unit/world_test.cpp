// Tests the simulated world itself: it must report a lost wake-up only if there was one.
#include "../world.h"

#include <gtest/gtest.h>

namespace starling::simulation {
namespace {

constexpr uint64_t kSleepNs = 100'000'000;
uint32_t word;

/// A process sleeps on the word as long as the library does. Another process computes for some time, and then wakes it or not.
struct Slept {
    bool woken, held_against_it;
};

Slept sleep_beside(uint64_t seed, uint64_t other_after, bool rings) {
    World world(seed);
    Slept out{};
    world.add(0, 0, [&](Process& me) {
        me.futex = &word;
        out.woken = world.sleep_until(world.now + kSleepNs);
        out.held_against_it = me.lapsed == world.switches();
    });
    world.add(0, 1, [&](Process&) {
        world.compute(other_after);
        if (rings) world.wake_futex(&word);
    });
    EXPECT_EQ(world.run(), "");
    return out;
}

TEST(World, ALongSleepThatNoRingEndedIsReported) {
    const Slept slept = sleep_beside(1, kSleepNs / 2, false);
    EXPECT_FALSE(slept.woken);
    EXPECT_TRUE(slept.held_against_it);
}

TEST(World, ASleepThatARingEndedIsNotReported) {
    const Slept slept = sleep_beside(1, kSleepNs - 1000, true);
    EXPECT_TRUE(slept.woken);
    EXPECT_FALSE(slept.held_against_it);
}

// The sleeper and the process that rings it may continue at the same instant, in random order. A ring before the sleeper's turn must count.
TEST(World, ARingBetweenTheEndOfASleepAndItsTurnCounts) {
    int first = 0, second = 0;
    for (uint64_t seed = 1; seed <= 64; ++seed) {
        const Slept slept = sleep_beside(seed, kSleepNs, true);
        EXPECT_FALSE(slept.woken);
        ++(slept.held_against_it ? second : first);
    }
    EXPECT_GT(first, 0) << "a ring before the sleeper's turn was not seen";
    EXPECT_GT(second, 0) << "no process came second";
}

}  // namespace
}  // namespace starling::simulation
