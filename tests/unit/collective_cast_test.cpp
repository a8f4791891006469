// When calls are arranged for a group of the network: as the last blocking one went, and now and then in hope.
#include "collective/cast.h"

#include <gtest/gtest.h>

namespace {

using starling::collective::Cast;
namespace multicast = starling::multicast;

struct Nothing : Cast {
    bool start_send(multicast::Send&, uint64_t, const void*, uint64_t) override { return false; }
    void start_receive(multicast::Receive&, int, uint64_t, void*, uint64_t) override {}
    bool withdraw(multicast::Receive&) override { return true; }
};

/// How many of the blocking calls [first, last) are arranged for a group that takes none.
int in_vain(Cast& cast, int first, int last) {
    int tries = 0;
    for (int tag = first; tag < last; ++tag) {
        if (!cast.expected(tag, true)) continue;
        ++tries;
        cast.learn(tag, false);
    }
    return tries;
}

TEST(Cast, AGroupThatNeverWorksIsTriedEverLess) {
    Nothing cast;
    EXPECT_LE(in_vain(cast, 1, 1000), 11);
    const int later = in_vain(cast, 1000, 100'000);
    EXPECT_GE(later, 90);
    EXPECT_LE(later, 110);
}

TEST(Cast, OneThatWorksIsUsedByAllCalls) {
    Nothing cast;
    EXPECT_FALSE(cast.expected(5, false));
    ASSERT_TRUE(cast.expected(5, true));
    cast.learn(5, true);
    for (int tag = 6; tag < 50; ++tag) EXPECT_TRUE(cast.expected(tag, tag % 2 == 0));
}

TEST(Cast, OneThatStopsWorkingIsTriedAgainSoon) {
    Nothing cast;
    cast.learn(1, true);
    cast.learn(2, false);
    EXPECT_FALSE(cast.expected(3, true));
    int tag = 3;
    while (!cast.expected(tag, true)) ++tag;
    EXPECT_LE(tag, 6);
    cast.learn(tag, true);
    EXPECT_TRUE(cast.expected(tag + 1, false));
}

TEST(Cast, WhatGoesByTheTreeBetweenTwoTriesChangesNothing) {
    Nothing often, never;
    in_vain(often, 1, 40);
    in_vain(never, 1, 40);
    for (int tag = 40; tag < 60; ++tag) {
        if (!often.expected(tag, true)) often.learn(tag, false);
        EXPECT_EQ(often.expected(tag, true), never.expected(tag, true)) << tag;
    }
}

}  // namespace
