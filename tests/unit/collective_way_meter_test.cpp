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
        if (meter.uses_ring(bytes)) continue;
        const WayMeter::GatherChoice choice = meter.next(bytes, true, true);
        turns += choice.way == Way::turns;
        meter.note(choice.way, bytes, 1000 * (choice.way == Way::turns ? turns_us : ring_us));
        meter.expect_ring(bytes, choice.ring_calls);
    }
    return turns;
}

TEST(WayMeter, TriesBothWaysThenUsesTheFasterOne) {
    for (const bool turns_are_faster : {false, true}) {
        WayMeter meter;
        const uint64_t turns_us = turns_are_faster ? 1000 : 2000;
        EXPECT_EQ(turns_of(meter, 4, 1 << 20, turns_us, 1500), 2);
        EXPECT_EQ(turns_of(meter, 60, 1 << 20, turns_us, 1500), turns_are_faster ? 60 : 0);
    }
}

TEST(WayMeter, TriesASlowWayMoreAndMoreRarely) {
    WayMeter meter;
    turns_of(meter, 4, 1 << 20, 100'000, 1000);
    EXPECT_EQ(turns_of(meter, 64, 1 << 20, 100'000, 1000), 1);
    EXPECT_EQ(turns_of(meter, 128, 1 << 20, 100'000, 1000), 1);
    EXPECT_EQ(turns_of(meter, 256, 1 << 20, 100'000, 1000), 1);
}

TEST(WayMeter, FollowsANetworkThatChanges) {
    WayMeter meter;
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
        if (meter.uses_ring(1 << 20)) continue;
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
    WayMeter meter;
    turns_of(meter, 4, 1 << 20, 1000, 2000);
    turns_of(meter, 4, 1 << 16, 2000, 1000);
    EXPECT_EQ(turns_of(meter, 10, 3 << 19, 1500, 3000), 10);
    EXPECT_EQ(turns_of(meter, 10, 1 << 16, 2000, 1000), 0);
}

}  // namespace
}  // namespace starling::collective
