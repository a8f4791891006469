// The choice between fragments and the kernel's copy by their measured times: message/protocol/timed_copy.h.
#include "message/protocol/timed_copy.h"

#include <gtest/gtest.h>

#include <array>

namespace starling::message::timed_copy {
namespace {

constexpr unsigned kTwo = 1u << static_cast<int>(TransferWay::pieces) | 1u << static_cast<int>(TransferWay::kernel);
constexpr unsigned kThree = kTwo | 1u << static_cast<int>(TransferWay::both);

/// Transfers messages that take `times` in the three ways; returns how many took each way.
std::array<int, kWays> transfer(WayTimes& choice, int messages, std::array<float, kWays> times, unsigned possible = kThree,
                                TransferWay rule = TransferWay::pieces) {
    std::array<int, kWays> taken{};
    for (int i = 0; i < messages; ++i) {
        const TransferWay way = choice.next(rule, possible);
        EXPECT_TRUE(possible >> static_cast<int>(way) & 1);
        ++taken[static_cast<size_t>(way)];
        choice.add(way, times[static_cast<size_t>(way)]);
    }
    return taken;
}

TEST(TimedCopy, BeginsWithTheRulesWay) {
    for (const TransferWay rule : {TransferWay::pieces, TransferWay::both, TransferWay::kernel}) {
        WayTimes choice;
        EXPECT_EQ(choice.next(rule, kThree), rule);
        EXPECT_EQ(choice.preferred(rule, kThree), rule);
    }
}

TEST(TimedCopy, PrefersTheFastestWayWhateverTheRuleSays) {
    for (const TransferWay rule : {TransferWay::pieces, TransferWay::both, TransferWay::kernel})
        for (size_t fastest = 0; fastest < kWays; ++fastest) {
            WayTimes choice;
            std::array<float, kWays> times{2, 2, 2};
            times[fastest] = 1;
            transfer(choice, 200, times, kThree, rule);
            EXPECT_GT(transfer(choice, 10'000, times, kThree, rule)[fastest], 9'900);
        }
}

TEST(TimedCopy, TriesMuchSlowerWaysSeldom) {
    WayTimes choice;
    transfer(choice, 200, {1, 3, 2});
    const auto taken = transfer(choice, 100'000, {1, 3, 2});
    EXPECT_GE(taken[1], 90);
    EXPECT_LE(taken[1] + taken[2], 200);  // 0.4 % more time on average
}

TEST(TimedCopy, KeepsTheRulesWayIfAnotherIsHardlyFaster) {
    WayTimes choice;
    transfer(choice, 200, {1, 2, 0.95f});
    EXPECT_EQ(choice.preferred(TransferWay::pieces, kThree), TransferWay::pieces);
}

TEST(TimedCopy, NeverTakesAWayThatIsNotPossible) {
    WayTimes choice;
    EXPECT_EQ(transfer(choice, 5'000, {3, 1, 2}, kTwo)[static_cast<size_t>(TransferWay::both)], 0);
    EXPECT_EQ(choice.preferred(TransferWay::pieces, kTwo), TransferWay::kernel);
}

TEST(TimedCopy, InterruptionsDoNotChangeTheChoice) {
    WayTimes choice;
    transfer(choice, 200, {1, 2, 2});
    for (int i = 0; i < 1'000; ++i) {
        const TransferWay way = choice.next(TransferWay::pieces, kThree);
        choice.add(way, i % 20 == 0 ? 1'000 : way == TransferWay::pieces ? 1 : 2);
    }
    EXPECT_EQ(choice.preferred(TransferWay::pieces, kThree), TransferWay::pieces);
}

TEST(TimedCopy, FollowsAChangedPlacement) {
    WayTimes choice;
    transfer(choice, 1'000, {1, 4, 3});
    transfer(choice, 5'000, {4, 4, 1});
    EXPECT_EQ(choice.preferred(TransferWay::pieces, kThree), TransferWay::kernel);
    transfer(choice, 5'000, {1, 4, 3});
    EXPECT_EQ(choice.preferred(TransferWay::pieces, kThree), TransferWay::pieces);
}

}  // namespace
}  // namespace starling::message::timed_copy
