// Tests the what-if curves and the plan computed from them.
#include "starling/profile/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
    // 16 of a pair's 200 messages are sent before the connection opens.
    EXPECT_DOUBLE_EQ(curves.on_demand[2], 184.0 / 200);
    EXPECT_EQ(curves.knee(), 2u);
}

TEST(WhatIf, RespectsBothSides) {
    // All ranks send to rank 0, which has a quota of one connection: the pair with the most traffic gets it.
    Written file = begin(4);
    add_phase(file, 4, "p", 1, 1, 0, {{1, {{0, 20}}}, {2, {{0, 60}}}, {3, {{0, 20}}}});
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.planned[1], 0.6);
    EXPECT_DOUBLE_EQ(curves.planned[2], 0.8);
    EXPECT_DOUBLE_EQ(curves.planned[3], 1);
    EXPECT_EQ(curves.knee(), 3u);
}

TEST(WhatIf, WhatIsNotWorthAConnectionIsNotPlanned) {
    // In a ring with heavy traffic all other pairs exchange two messages once: the ring alone must be planned. A pair that exchanges few
    // messages in every occurrence must be planned too.
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
    // Two alternating patterns: with a quota for both no connection closes, and the threshold is paid once per connection.
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
    // The phase's first occurrence has other partners than its three later ones.
    Written file = begin(4);
    add_phase(file, 4, "p", 1, 1, 0, {{0, {{1, 100}}}, {2, {{3, 100}}}});
    for (uint64_t nth = 2; nth <= 4; ++nth)
        add_phase(file, 4, "p", nth, nth, static_cast<double>(nth), {{0, {{2, 100}}}, {1, {{3, 100}}}});
    const WhatIf curves = what_if(file.read());
    EXPECT_DOUBLE_EQ(curves.planned[1], 1);
    EXPECT_DOUBLE_EQ(curves.fixed[1], 0.25);
    // Two connections open in the first occurrence and two in the second, and all stay open.
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
    // Each later occurrence has three quarters of its predecessor's weight: 101 + 0.75 * 102 + 0.5625 * 103.
    EXPECT_EQ(plan.phases[0].peers[0], (Peers{{1, 235}}));
    EXPECT_EQ(plan.phases[0].peers[1], (Peers{{0, 235}}));
    EXPECT_EQ(plan.phases[1].from, 4u);
    EXPECT_FALSE(plan.phases[1].to);  // no end: the plan is valid for all later occurrences
    EXPECT_EQ(plan.phases[1].peers[2], (Peers{{0, 88}}));
    EXPECT_EQ(plan.phases[2].name, "output");
}

TEST(Plan, AnotherPartnerIsWorthAConnectionOnlyIfThatPaysForClosingAndOpening) {
    const auto second_partner_of_0 = [](uint64_t messages) {
        Written file = begin(4);
        for (uint64_t nth = 1; nth <= 8; ++nth) {
            const Matrix even{{0, {{1, messages}}}}, odd{{0, {{2, messages}}}};
            add_phase(file, 4, "step", nth, nth, static_cast<double>(nth), nth % 2 == 0 ? odd : even);
        }
        PlanWish wish;
        wish.max_direct = 1;
        return make_plan(file.read(), wish).phases[1].peers[0][0].first;
    };
    EXPECT_EQ(second_partner_of_0(1000), 2u);
    EXPECT_EQ(second_partner_of_0(60), 1u);
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

/// Returns a row of a profile's collectives on a communicator of two: `number` calls of both ranks, each of `each` seconds with the given
/// deviation.
std::string calls(const char* kind, const char* algorithm, bool tried, double number, double each, double deviation) {
    return fmt::format(R"(["a+1","w",2,"{}","<=64","{}",{},80,{},{},{}])", kind, algorithm, number, number * each,
                       number * (each * each + deviation * deviation), tried);
}

std::vector<PlannedCollective> chosen(const std::vector<std::string>& rows) {
    Written file = begin(2);
    file.add(fmt::format(R"({{"kind":"phase","job":0,"rank":0,"phase":"","from":1,"to":1,"began":0,"seconds":1,)"
                         R"("peers":[[0,1,50,80,0,0,0,0,0,0]],"collectives":[{}]}})",
                         fmt::join(rows, ",")));
    return choose_algorithms(file.read());
}

TEST(Plan, TakesTheFasterAlgorithm) {
    const auto found =
        chosen({calls("allreduce", "node", false, 100, 50e-6, 10e-6), calls("allreduce", "ring", true, 100, 40e-6, 10e-6),
                calls("allreduce", "linear", true, 100, 45e-6, 10e-6)});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, "allreduce");
    EXPECT_EQ(found[0].size, "<=64");
    EXPECT_EQ(found[0].processes, 2u);
    EXPECT_EQ(found[0].algorithm, "ring");
    EXPECT_EQ(found[0].instead_of, "node");
    EXPECT_NEAR(found[0].before, 50e-6, 1e-9);
    EXPECT_NEAR(found[0].after, 40e-6, 1e-9);
}

TEST(Plan, LeavesTheTablesAlgorithmWhereNoOtherIsSurelyBetter) {
    const auto usual = calls("bcast", "node", false, 100, 50e-6, 10e-6);
    EXPECT_TRUE(chosen({usual}).empty()) << "nothing was tried";
    EXPECT_TRUE(chosen({usual, calls("bcast", "chain", true, 100, 60e-6, 10e-6)}).empty()) << "slower";
    EXPECT_TRUE(chosen({usual, calls("bcast", "chain", true, 100, 40e-6, 200e-6)}).empty()) << "within the noise";
    EXPECT_TRUE(chosen({usual, calls("bcast", "chain", true, 100, 49e-6, 1e-7)}).empty()) << "not worth it";
    EXPECT_TRUE(chosen({usual, calls("bcast", "chain", true, 8, 10e-6, 1e-6)}).empty()) << "too few calls";
    EXPECT_TRUE(chosen({calls("bcast", "chain", true, 100, 10e-6, 1e-6)}).empty()) << "nothing to compare with";
    EXPECT_TRUE(
        chosen({calls("ibcast", "node", false, 100, 50e-6, 1e-6), calls("ibcast", "chain", true, 100, 10e-6, 1e-6)}).empty())
        << "the time of a call that does not wait says nothing";
    EXPECT_EQ(chosen({usual, calls("bcast", "chain", true, 100, 40e-6, 10e-6)}).size(), 1u);
}

TEST(Plan, AFileThatTellsNoDeviationsGivesNoAlgorithms) {
    EXPECT_TRUE(
        chosen({R"(["a+1","w",2,"bcast","<=64","node",100,80,0.5])", R"(["a+1","w",2,"bcast","<=64","ring",100,80,0.1])"})
            .empty());
}

TEST(Plan, IsReadableAsJson) {
    Written file = begin(4, 0, "quote\\\"d");
    add_phase(file, 4, "step", 1, 1, 0, ring(4, 10));
    Plan plan = make_plan(file.read());
    plan.host_of_rank = {0, 1};
    plan.eager_limit = 32768;
    plan.collectives.push_back({"bcast", "<=64", 4, "chain", "node", 2e-6, 1e-6});
    const auto json = nlohmann::json::parse(to_text(plan));
    EXPECT_EQ(json["starling_plan"], 1);
    EXPECT_EQ(json["application"], "quote\"d");
    EXPECT_EQ(json["size"], 4);
    EXPECT_EQ(json["phases"][0]["to"], nullptr);
    EXPECT_EQ(json["phases"][0]["peers"]["0"], nlohmann::json::parse("[[1,20],[3,20]]"));
    EXPECT_EQ(json["collectives"][0]["algorithm"], "chain");
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
