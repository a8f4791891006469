// The choice between the shared-memory stage and messages by measured times.
#include "collective/core/stage_meter.h"

#include <gtest/gtest.h>

namespace starling::collective {
namespace {

constexpr uint32_t kFirstCalls = StageTimes::kWarmCalls + StageTimes::kSamples + StageTimes::kFirstTrial;
constexpr uint32_t kTrialCalls = StageTimes::kSamples + StageTimes::kLaterTrial;

/// Two members that make the same calls.
struct Pair {
    StageTimes member[2];

    /// Makes `calls` calls, in which a way takes the given ns at a member. Returns how many used messages.
    int messages_of(uint32_t calls, uint64_t stage_ns, uint64_t messages_ns, uint64_t more_at_second = 0) {
        int messages = 0;
        for (uint32_t i = 0; i < calls; ++i) {
            StageWay ways[2];
            if (member[0].is_decision_due()) {
                const auto a = member[0].times(), b = member[1].times();
                for (StageTimes& each : member) each.decide({a[0] + b[0], a[1] + b[1]});
            }
            for (int m = 0; m < 2; ++m) {
                const StageTimes::Call call = member[m].next();
                ways[m] = call.way;
                const uint64_t ns = call.way == StageWay::stage ? stage_ns : messages_ns;
                if (call.measured)
                    member[m].add(call.way, ns + (m == 1 && call.way == StageWay::messages ? more_at_second : 0));
            }
            EXPECT_EQ(ways[0], ways[1]);
            messages += ways[0] == StageWay::messages;
        }
        return messages;
    }
};

TEST(StageMeter, BeginsWithTheStageAndTriesMessages) {
    Pair pair;
    EXPECT_EQ(pair.messages_of(StageTimes::kWarmCalls + StageTimes::kSamples, 1000, 500), 0);
    EXPECT_EQ(pair.messages_of(StageTimes::kFirstTrial, 1000, 500), static_cast<int>(StageTimes::kFirstTrial));
}

TEST(StageMeter, KeepsTheClearlyFasterWay) {
    Pair fast, slow, alike;
    for (Pair* each : {&fast, &slow, &alike})
        each->messages_of(kFirstCalls, 1000, each == &fast ? 500 : each == &slow ? 2000 : 950);
    EXPECT_EQ(fast.messages_of(1000, 1000, 500), 1000);
    EXPECT_EQ(slow.messages_of(1000, 1000, 2000), 0);
    EXPECT_EQ(alike.messages_of(1000, 1000, 950), 0);
}

TEST(StageMeter, CountsTheTimesOfBothMembers) {
    Pair pair;
    pair.messages_of(kFirstCalls, 1000, 500, 2000);  // 500 at one member, 2500 at the other
    EXPECT_EQ(pair.messages_of(1000, 1000, 500), 0);
}

TEST(StageMeter, ChangesItsChoiceWhenTheTimesChange) {
    Pair pair;
    pair.messages_of(kFirstCalls, 1000, 500);
    pair.messages_of(StageTimes::kAgain, 1000, 500);
    pair.messages_of(kTrialCalls, 1000, 2000);
    EXPECT_EQ(pair.messages_of(1000, 1000, 2000), 0);
}

TEST(StageMeter, TriesTheSlowerWayMoreAndMoreRarely) {
    Pair pair;
    pair.messages_of(kFirstCalls, 1000, 2000);
    const int trial = static_cast<int>(StageTimes::kLaterTrial);
    EXPECT_EQ(pair.messages_of(StageTimes::kAgain + kTrialCalls, 1000, 2000), trial);
    EXPECT_EQ(pair.messages_of(2 * StageTimes::kAgain, 1000, 2000), 0);
    EXPECT_EQ(pair.messages_of(kTrialCalls, 1000, 2000), trial);
    EXPECT_LE(pair.messages_of(100'000, 1000, 2000), 14 * trial);
}

TEST(StageMeter, IgnoresTwoInterruptionsOfFiveCalls) {
    StageTimes times;
    times.next();
    for (uint32_t i = 0; i < StageTimes::kSamples; ++i) {
        times.next();
        times.add(StageWay::stage, i < 2 ? 4'000'000 : 1000 + i);
    }
    EXPECT_LT(times.times()[0], 2000);
}

TEST(StageMeter, DistinguishesLengths) {
    StageMeter meter;
    EXPECT_EQ(&meter.of(0, StageMeter::kShortest), &meter.of(0, 32 << 10));
    EXPECT_NE(&meter.of(0, 32 << 10), &meter.of(0, (32 << 10) + 1));
    EXPECT_NE(&meter.of(0, 32 << 10), &meter.of(1, 32 << 10));
    EXPECT_EQ(&meter.of(2, uint64_t{1} << 40), &meter.of(2, 8 << 20));
}

}  // namespace
}  // namespace starling::collective
