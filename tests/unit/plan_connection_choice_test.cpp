// The choice of planned connections to request, and the partners that a history plan has learned.
#include "plan/connection_choice.h"

#include <gtest/gtest.h>

#include "plan/history_plan.h"

namespace starling::plan {
namespace {

using enum ConnectionAvailability;
using Indexes = std::vector<size_t>;

Indexes ask(std::vector<ConnectionAvailability> wanted, ConnectionSlots places) { return choose_requests(wanted, places); }

TEST(ConnectionChoice, RequestsConnectionsThatHaveAPlace) {
    EXPECT_EQ(ask({missing, missing, missing}, {4, 4, 0}), (Indexes{0, 1, 2}));
    EXPECT_EQ(ask({}, {4, 4, 0}), Indexes{});
    EXPECT_EQ(ask({missing}, {0, 0, 0}), Indexes{});
}

TEST(ConnectionChoice, TheFirstPeersGetThePlaces) {
    EXPECT_EQ(ask({missing, missing, missing, missing}, {2, 2, 0}), (Indexes{0, 1}));
}

TEST(ConnectionChoice, AWantedOpenConnectionKeepsItsPlace) {
    EXPECT_EQ(ask({missing, held, held, missing}, {3, 1, 0}), (Indexes{0}));
    EXPECT_EQ(ask({held, held, held}, {3, 0, 0}), Indexes{});
}

TEST(ConnectionChoice, OnlyAsManyConnectionsCloseAsNeeded) {
    // One wanted peer and three peers outside the plan have connections.
    EXPECT_EQ(ask({missing, held, missing}, {4, 0, 0}), (Indexes{0, 2}));
    EXPECT_EQ(ask({missing, held, missing}, {4, 0, 1}), (Indexes{2}));  // one connection is closing already
    EXPECT_EQ(ask({missing, held, missing}, {4, 0, 2}), Indexes{});
    EXPECT_EQ(ask({missing, held, missing}, {4, 1, 1}), (Indexes{0}));
}

TEST(ConnectionChoice, ABarredPeersPlaceIsUsedByTheNext) {
    EXPECT_EQ(ask({barred, missing, barred, missing, missing}, {2, 2, 0}), (Indexes{1, 3}));
    EXPECT_EQ(ask({barred, barred}, {2, 2, 0}), Indexes{});
}

TEST(HistoryPlan, TheLastOccurrenceIsThePlanOfTheNext) {
    HistoryPlan learned;
    EXPECT_EQ(learned.partners(3, 1), nullptr);
    learned.ended(3, {{1, 2, 30}, {1, 4, 7}}, 1);
    ASSERT_NE(learned.partners(3, 2), nullptr);
    EXPECT_EQ(*learned.partners(3, 2), (Partners{{1, 2, 30}, {1, 4, 7}}));
    EXPECT_EQ(learned.partners(2, 1), nullptr);
    learned.ended(3, {{1, 5, 1}}, 1);
    EXPECT_EQ(*learned.partners(3, 3), (Partners{{1, 5, 1}}));
    learned.ended(3, {}, 1);
    EXPECT_TRUE(learned.partners(3, 4)->empty());
}

TEST(HistoryPlan, TrafficOfTheNextPhaseCountsLess) {
    HistoryPlan learned;
    learned.ended(1, {{1, 2, 100}}, 2);
    EXPECT_EQ(*learned.partners(1, 2), (Partners{{1, 2, 100}}));
    learned.ended(2, {{1, 3, 1000}, {1, 2, 200}}, 4);
    EXPECT_EQ(*learned.partners(2, 2), (Partners{{1, 3, 1000}, {1, 2, 200}}));
    // Traffic of the next phase counts three quarters, and at most 0.75 * 256: four times the cost (64) of opening a connection then.
    EXPECT_EQ(*learned.partners(1, 2), (Partners{{1, 2, 250}, {1, 3, 192}}));
}

TEST(HistoryPlan, AReturningPhaseCountsAgain) {
    HistoryPlan learned;
    learned.ended(1, {{1, 2, 100}}, 2);
    learned.ended(2, {{1, 3, 100}}, 1);
    const Partners one = *learned.partners(1, 2), other = *learned.partners(2, 2);
    EXPECT_EQ(one[0].rank, 2u);
    EXPECT_EQ(other[0].rank, 3u);
    EXPECT_EQ(one[0].priority, other[0].priority);
    EXPECT_GT(one[0].priority, 200u);
    EXPECT_NEAR(one[1].priority, 0.7 * one[0].priority, 0.1 * one[0].priority);
}

}  // namespace
}  // namespace starling::plan
