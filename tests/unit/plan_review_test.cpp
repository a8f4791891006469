// The review of plans that turn out to be wrong: its estimate of the traffic with connections on demand, and when it drops a plan.
#include "plan/plan_review.h"

#include <gtest/gtest.h>

#include <vector>

namespace starling::plan {
namespace {

constexpr DemandPolicy kTerms{8, 0, 2};

uint64_t phase(OnDemand& model, const Partners& partners) {
    std::vector<PeerTraffic> all_sent;
    for (const Partner& partner : partners) all_sent.push_back({partner, partner.priority});
    return model.phase(all_sent, kTerms);
}

TEST(OnDemand, TheFirstMessagesTakeTheBasePath) {
    OnDemand model;
    EXPECT_EQ(phase(model, {{1, 1, 100}, {1, 2, 8}, {1, 3, 9}}), 92u + 1u);
    EXPECT_EQ(phase(model, {}), 0u);
}

TEST(OnDemand, TheBusiestPeersHaveThePlaces) {
    OnDemand model;
    EXPECT_EQ(phase(model, {{1, 1, 20}, {1, 2, 30}, {1, 3, 40}}), 22u + 32u);
}

TEST(OnDemand, OpenConnectionsStayOpen) {
    OnDemand model;
    EXPECT_EQ(phase(model, {{1, 1, 100}, {1, 2, 100}}), 184u);
    EXPECT_EQ(phase(model, {{1, 1, 100}, {1, 2, 5}}), 105u);
    // In a phase in which peers 1 and 2 are idle, they keep their connections, because no other peer has enough traffic to replace them.
    EXPECT_EQ(phase(model, {{1, 3, 2}}), 0u);
    EXPECT_EQ(phase(model, {{1, 1, 10}, {1, 2, 10}}), 20u);
    // Then peers 3 and 4 take both connections. So peers 1 and 2 need new ones, and the first 8 messages of each take the base path.
    EXPECT_EQ(phase(model, {{1, 3, 50}, {1, 4, 50}}), 84u);
    EXPECT_EQ(phase(model, {{1, 1, 10}, {1, 2, 10}}), 4u);
}

TEST(OnDemand, AReplacementMustBeEarned) {
    OnDemand model;
    const DemandPolicy terms{8, 64, 1};
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 1, 200}, 100}}, terms), 92u);
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 2, 200}, 100}}, terms), 36u);
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 1, 64}, 64}}, terms), 0u);
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 2, 50}, 50}}, terms), 50u);
}

TEST(OnDemand, RanksOfOtherJobsAreDistinct) {
    OnDemand model;
    EXPECT_EQ(phase(model, {{1, 1, 100}}), 92u);
    EXPECT_EQ(phase(model, {{2, 1, 100}}), 92u);
    EXPECT_EQ(phase(model, {{1, 1, 100}, {2, 1, 100}}), 200u);
}

TEST(OnDemand, OpeningAConnectionTakesAsLongAsInThePlan) {
    OnDemand model;
    const PeerTraffic opened_late{{1, 1, 100}, 100, 60}, opened_at_once{{1, 2, 100}, 100, 2};
    EXPECT_EQ(model.phase(std::vector{opened_late, opened_at_once}, kTerms), 40u + 92u);
    // A connection that stays open needs no time to open.
    EXPECT_EQ(model.phase(std::vector{opened_late}, kTerms), 100u);
    // A connection that the plan never opened does not show how long opening takes.
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 3, 300}, 300, 300}}, kTerms), 292u);
}

TEST(OnDemand, PeersThatOnlySendToUsUsePlacesToo) {
    OnDemand model;
    const PeerTraffic heard{{1, 1, 100}, 0}, heard_more{{1, 2, 200}, 50}, told{{1, 3, 90}, 90};
    EXPECT_EQ(model.phase(std::vector{heard, heard_more, told}, kTerms), 42u);
}

TEST(OnDemand, WithoutPlacesNothingUsesConnections) {
    OnDemand model;
    EXPECT_EQ(model.phase(std::vector{PeerTraffic{{1, 1, 100}, 100}}, {kTerms.threshold, 0, 0}), 0u);
}

TEST(PlanReview, ThreeWorsePhasesInARowDropThePlan) {
    PlanReview doubt;
    EXPECT_FALSE(doubt.phase(1000, 100, 500));
    EXPECT_FALSE(doubt.phase(1000, 100, 500));
    EXPECT_FALSE(doubt.phase(1000, 500, 500));
    EXPECT_FALSE(doubt.phase(1000, 100, 500));
    EXPECT_FALSE(doubt.phase(1000, 100, 500));
    EXPECT_TRUE(doubt.phase(1000, 100, 500));
}

TEST(PlanReview, FewMessagesAreNoEvidence) {
    PlanReview doubt;
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(doubt.phase(PlanReview::kFewMessages - 1, 0, PlanReview::kFewMessages - 1));
    EXPECT_FALSE(doubt.phase(1000, 0, 900));
    EXPECT_FALSE(doubt.phase(1000, 0, 900));
    EXPECT_FALSE(doubt.phase(3, 3, 3));
    EXPECT_TRUE(doubt.phase(1000, 0, 900));
}

TEST(PlanReview, AnEqualPlanIsKept) {
    PlanReview doubt;
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(doubt.phase(1000, 480, 500));
}

}  // namespace
}  // namespace starling::plan
