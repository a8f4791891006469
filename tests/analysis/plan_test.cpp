// What if, and the plan that comes of it.
#include "starling/profile/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "starling/profile/what_if.h"
#include "written.h"

namespace starling::analysis {
namespace {

TEST(WhatIf, ARingNeedsTwo) {
    Written file = begin(8);
    add_phase(file, 8, "step", 1, 1, 0, ring(8, 100), 3);
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.planned[0], 0);
    EXPECT_DOUBLE_EQ(curves.planned[1], 0.5);
    EXPECT_DOUBLE_EQ(curves.planned[2], 1);
    EXPECT_DOUBLE_EQ(curves.planned[kMostDirect], 1);
    EXPECT_DOUBLE_EQ(curves.fixed[2], 1);
    EXPECT_DOUBLE_EQ(curves.recorded, 0.3);
    // Of the 200 messages of a pair 16 go before the connection is there.
    EXPECT_DOUBLE_EQ(curves.on_demand[2], 184.0 / 200);
    EXPECT_EQ(curves.knee(), 2u);
}

TEST(WhatIf, RespectsBothSides) {
    // All talk to rank 0, which has room for one: the heaviest.
    Written file = begin(4);
    add_phase(file, 4, "p", 1, 1, 0, {{1, {{0, 20}}}, {2, {{0, 60}}}, {3, {{0, 20}}}});
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.planned[1], 0.6);
    EXPECT_DOUBLE_EQ(curves.planned[2], 0.8);
    EXPECT_DOUBLE_EQ(curves.planned[3], 1);
    EXPECT_EQ(curves.knee(), 3u);
}

TEST(WhatIf, WhatIsNotWorthAConnectionIsNotPlanned) {
    // Everybody sends two messages to everybody, once, besides a ring; and a second pair talks little, but again and again.
    Written file = begin(8);
    Matrix all = ring(8, 100);
    for (uint32_t i = 0; i < 8; ++i)
        for (uint32_t d = 2; d < 7; ++d) all[i].emplace_back((i + d) % 8, 2);
    add_phase(file, 8, "p", 1, 1, 0, all);
    const WhatIf curves = what_if(file.read());
    EXPECT_EQ(curves.knee(), 2u);
    EXPECT_DOUBLE_EQ(curves.chosen[kMostDirect], 1600.0 / 1680);
    Written steady = begin(2);
    for (uint64_t nth = 1; nth <= 20; ++nth) add_phase(steady, 2, "p", nth, nth, static_cast<double>(nth), {{0, {{1, 2}}}});
    EXPECT_DOUBLE_EQ(what_if(steady.read()).planned[1], 1);
    EXPECT_DOUBLE_EQ(what_if(steady.read()).on_demand[1], (40.0 - 16) / 40);
}

TEST(WhatIf, WhatIsOpenStaysWhereThereIsRoom) {
    // Two patterns in turn: with room for both, nothing closes, and demand pays once.
    Written file = begin(4);
    for (uint64_t nth = 1; nth <= 6; ++nth) {
        const Matrix even{{0, {{1, 100}}}, {2, {{3, 100}}}}, odd{{0, {{2, 100}}}, {1, {{3, 100}}}};
        add_phase(file, 4, "p", nth, nth, static_cast<double>(nth), nth % 2 == 0 ? even : odd);
    }
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.on_demand[1], 84.0 / 100);
    EXPECT_DOUBLE_EQ(curves.on_demand[2], (1200.0 - 4 * 16) / 1200);
    EXPECT_DOUBLE_EQ(curves.planned[1], 1);
    EXPECT_EQ(curves.knee(), 1u);
}

TEST(WhatIf, StaticKeepsTheFirst) {
    // The partners of the first occurrence are not those of the other three.
    Written file = begin(4);
    add_phase(file, 4, "p", 1, 1, 0, {{0, {{1, 100}}}, {2, {{3, 100}}}});
    for (uint64_t nth = 2; nth <= 4; ++nth)
        add_phase(file, 4, "p", nth, nth, static_cast<double>(nth), {{0, {{2, 100}}}, {1, {{3, 100}}}});
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.planned[1], 1);
    EXPECT_DOUBLE_EQ(curves.fixed[1], 0.25);
    // Two pairs open in the first occurrence and two in the second, and stay.
    EXPECT_DOUBLE_EQ(curves.on_demand[1], (800.0 - 4 * 16) / 800);
}

TEST(Plan, PutsLikeOccurrencesTogether) {
    Written file = begin(4);
    for (uint64_t nth = 1; nth <= 3; ++nth)
        add_phase(file, 4, "step", nth, nth, static_cast<double>(nth), {{0, {{1, 100 + nth}}}});
    for (uint64_t nth = 4; nth <= 5; ++nth) add_phase(file, 4, "step", nth, nth, static_cast<double>(nth), {{0, {{2, 50}}}});
    add_phase(file, 4, "output", 1, 1, 9, {{3, {{0, 1}}}});
    const Plan plan = make_plan(file.read());
    ASSERT_EQ(plan.phases.size(), 3u);
    EXPECT_EQ(plan.size, 4u);
    EXPECT_EQ(plan.max_direct, 1u);
    EXPECT_EQ(plan.phases[0].from, 1u);
    EXPECT_EQ(plan.phases[0].to, 3u);
    using Peers = std::vector<std::pair<uint32_t, uint64_t>>;
    EXPECT_EQ(plan.phases[0].peers[0], (Peers{{1, 102}}));
    EXPECT_EQ(plan.phases[0].peers[1], (Peers{{0, 102}}));
    EXPECT_EQ(plan.phases[1].from, 4u);
    EXPECT_FALSE(plan.phases[1].to);  // and all later ones
    EXPECT_EQ(plan.phases[1].peers[2], (Peers{{0, 50}}));
    EXPECT_EQ(plan.phases[2].name, "output");
}

TEST(Plan, NeverGivesAProcessMoreThanMaxDirect) {
    Written file = begin(16);
    Matrix all;
    for (uint32_t i = 0; i < 16; ++i)
        for (uint32_t j = 0; j < 16; ++j)
            if (i != j) all[i].emplace_back(j, 1 + (i * 7 + j * 13) % 50);
    add_phase(file, 16, "p", 1, 1, 0, all);
    for (uint32_t most = 1; most <= 15; ++most) {
        PlanWish wish;
        wish.max_direct = most;
        const Plan plan = make_plan(file.read(), wish);
        for (uint32_t rank = 0; rank < 16; ++rank) {
            const auto& peers = plan.phases[0].peers[rank];
            EXPECT_LE(peers.size(), most);
            EXPECT_TRUE(std::is_sorted(peers.begin(), peers.end(), [](auto& a, auto& b) { return a.second > b.second; }));
            for (const auto& [peer, priority] : peers) {
                const auto& back = plan.phases[0].peers[peer];
                EXPECT_NE(std::find(back.begin(), back.end(), std::pair(rank, priority)), back.end());
            }
        }
    }
}

TEST(Plan, TakesTheFasterAlgorithm) {
    Written file = begin(2);
    file.add(
        R"({"kind":"phase","job":0,"rank":0,"phase":"","from":1,"to":1,"began":0,"seconds":1,"peers":[[0,1,1,8,0,0,0,0,0,0]],)"
        R"("collectives":[["a+1","w",2,"allreduce","<=64","node",10,80,0.5],["a+1","w",2,"allreduce","<=64","ring",10,80,0.4],)"
        R"(["b+1","w",2,"bcast","<=64","node",10,80,0.5],)"
        R"(["c+1","w",2,"bcast","<=64","node",10,80,0.5],["c+1","w",2,"bcast","<=64","ring",1,80,0.001]]})");
    const Plan plan = make_plan(file.read());
    ASSERT_EQ(plan.collectives.size(), 1u);  // b has no alternative, and one call of c's says nothing
    EXPECT_EQ(plan.collectives[0].site, "a+1");
    EXPECT_EQ(plan.collectives[0].algorithm, "ring");
}

TEST(Plan, IsReadableAsJson) {
    Written file = begin(4, 0, "quote\\\"d");
    add_phase(file, 4, "step", 1, 1, 0, ring(4, 10));
    Plan plan = make_plan(file.read());
    plan.host_of_rank = {0, 1};
    plan.eager_limit = 32768;
    plan.collectives.push_back({"a", "b", "c", "d"});
    const auto json = nlohmann::json::parse(to_text(plan));
    EXPECT_EQ(json["starling_plan"], 1);
    EXPECT_EQ(json["application"], "quote\"d");
    EXPECT_EQ(json["size"], 4);
    EXPECT_EQ(json["phases"][0]["to"], nullptr);
    EXPECT_EQ(json["phases"][0]["peers"]["0"], nlohmann::json::parse("[[1,20],[3,20]]"));
    EXPECT_EQ(json["collectives"][0]["algorithm"], "d");
    EXPECT_EQ(json["eager_limit"], 32768);
    EXPECT_EQ(json["placement"], nlohmann::json::parse("[[0,0],[1,1]]"));
}

TEST(Plan, RefusesWhereNobodyTalks) {
    Written file = begin(2);
    add_phase(file, 2, "p", 1, 1, 0, {{0, {{0, 5}}}});
    EXPECT_THROW(make_plan(file.read()), Refusal);
}

}  // namespace
}  // namespace starling::analysis
