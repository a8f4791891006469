// The choice between turns of multicasts and a ring of messages by measured times.
#include "collective/core/way_meter.h"

#include <gtest/gtest.h>

namespace starling::collective {
namespace {

using Way = WayMeter::GatherWay;

/// Makes `calls` calls of `bytes` bytes, in which a way takes the given microseconds. Returns how many took turns.
int turns_of(WayMeter& meter, int calls, uint64_t bytes, uint64_t turns_us, uint64_t ring_us) {
    int turns = 0;
    for (int i = 0; i < calls; ++i) {
        if (meter.uses_ring(bytes, true)) continue;
        const WayMeter::GatherChoice choice = meter.next(bytes, true, true);
        turns += choice.way == Way::turns;
        meter.note(choice.way, bytes, 1000 * (choice.way == Way::turns ? turns_us : ring_us));
        meter.expect_ring(bytes, choice.ring_calls);
    }
    return turns;
}

/// Makes the calls that use the ring before anything is tried, for sizes like those.
WayMeter after_first_calls(std::initializer_list<uint64_t> sizes = {1 << 20}) {
    WayMeter meter;
    for (const uint64_t bytes : sizes)
        for (uint32_t i = 0; i < WayMeter::kFirst; ++i) EXPECT_TRUE(meter.uses_ring(bytes, true));
    return meter;
}

TEST(WayMeter, FewCallsUseTheRingWithoutADecision) {
    WayMeter meter;
    EXPECT_EQ(turns_of(meter, WayMeter::kFirst, 1 << 20, 1000, 2000), 0);
    EXPECT_FALSE(meter.uses_ring(1 << 20, true));
    WayMeter unmeasured;
    EXPECT_FALSE(unmeasured.uses_ring(1 << 20, false));
}

TEST(WayMeter, TriesOfASlowWayCostAHundredthOfTheTimeAtMost) {
    for (const uint64_t times : {2, 4, 10, 30}) {
        WayMeter meter = after_first_calls();
        turns_of(meter, 4, 1 << 20, 1000 * times, 1000);
        constexpr int kCalls = 20'000;
        const int turns = turns_of(meter, kCalls, 1 << 20, 1000 * times, 1000);
        EXPECT_GT(turns, 0) << times;
        EXPECT_LT(turns * static_cast<double>(times - 1), 0.011 * kCalls) << times;
    }
}

TEST(WayMeter, TriesBothWaysThenUsesTheFasterOne) {
    for (const bool turns_are_faster : {false, true}) {
        WayMeter meter = after_first_calls();
        const uint64_t turns_us = turns_are_faster ? 1000 : 2000;
        EXPECT_EQ(turns_of(meter, 4, 1 << 20, turns_us, 1500), 2);
        EXPECT_EQ(turns_of(meter, 60, 1 << 20, turns_us, 1500), turns_are_faster ? 60 : 0);
    }
}

TEST(WayMeter, TriesASlowWayMoreAndMoreRarely) {
    WayMeter meter = after_first_calls();
    turns_of(meter, 4, 1 << 20, 1200, 1000);
    EXPECT_EQ(turns_of(meter, 64, 1 << 20, 1200, 1000), 1);
    EXPECT_EQ(turns_of(meter, 128, 1 << 20, 1200, 1000), 1);
    EXPECT_EQ(turns_of(meter, 256, 1 << 20, 1200, 1000), 1);
}

TEST(WayMeter, FollowsANetworkThatChanges) {
    WayMeter meter = after_first_calls();
    turns_of(meter, 4, 1 << 20, 1000, 2000);
    EXPECT_GT(turns_of(meter, 50, 1 << 20, 9000, 2000), 0);
    EXPECT_EQ(turns_of(meter, 10, 1 << 20, 9000, 2000), 0);
    turns_of(meter, 2000, 1 << 20, 500, 2000);
    EXPECT_GT(turns_of(meter, 100, 1 << 20, 500, 2000), 95);
}

// A network without multicast must not pay for a decision in each call.
TEST(WayMeter, DecidesRarelyWhileTheGroupIsNotReady) {
    WayMeter meter;
    int decisions = 0;
    for (int i = 0; i < 1000; ++i) {
        if (meter.uses_ring(1 << 20, false)) continue;
        ++decisions;
        const WayMeter::GatherChoice choice = meter.next(1 << 20, false, false);
        EXPECT_EQ(choice.way, Way::ring);
        meter.expect_ring(1 << 20, choice.ring_calls);
    }
    EXPECT_LT(decisions, 32);
    EXPECT_EQ(meter.next(1 << 20, true, false).way, Way::turns);
    EXPECT_EQ(meter.next(1 << 20, false, false).ring_calls, 0u);
}

TEST(WayMeter, MeasuresEachSizeClassSeparately) {
    WayMeter meter = after_first_calls({1 << 20, 1 << 16});
    turns_of(meter, 4, 1 << 20, 1000, 2000);
    turns_of(meter, 4, 1 << 16, 2000, 1000);
    EXPECT_EQ(turns_of(meter, 10, 3 << 19, 1500, 3000), 10);
    EXPECT_EQ(turns_of(meter, 10, 1 << 16, 2000, 1000), 0);
}

}  // namespace
}  // namespace starling::collective
