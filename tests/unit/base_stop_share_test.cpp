#include "base/stop_share.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(StopShare, PausesTakeAtMostAFifthOfTheTime) {
    StopShare share;
    uint64_t began = 1000 * kMs, now = began, stopped = 0;
    for (; now < began + 10'000 * kMs; now += kMs) {
        if (!share.begin(3 * kMs, began, now)) continue;
        share.end(3 * kMs, 3 * kMs);
        stopped += 3 * kMs;
        now += 3 * kMs;
    }
    EXPECT_GE(stopped, (now - began) / StopShare::kPart);
    EXPECT_LE(stopped, (now - began) / StopShare::kPart + StopShare::kLongest + 3 * kMs);
}

// If other processes occupy the cores, a pause of 2 ms takes 40 ms.
TEST(StopShare, APauseCountsWithItsRealLength) {
    StopShare share;
    uint64_t now = 0, stopped = 0;
    for (; now < 10'000 * kMs; now += kMs) {
        if (!share.begin(2 * kMs, 0, now)) continue;
        share.end(2 * kMs, 40 * kMs);
        stopped += 40 * kMs;
        now += 40 * kMs;
    }
    EXPECT_LE(stopped, now / StopShare::kPart + StopShare::kLongest + 40 * kMs);
}

// The budget is charged when a pause begins, so that other threads cannot overrun it.
TEST(StopShare, APauseCountsFromItsBeginning) {
    StopShare share;
    EXPECT_TRUE(share.begin(StopShare::kLongest, 0, 0));
    EXPECT_TRUE(share.begin(1, 0, 0));
    EXPECT_FALSE(share.begin(1, 0, 0));
    share.end(StopShare::kLongest, kMs);
    EXPECT_TRUE(share.begin(1, 0, 0));
}

}  // namespace
}  // namespace starling
