// Placement must reduce traffic between hosts and never put more ranks on a host than it has slots.
#include "starling/profile/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "starling/profile/plan.h"
#include "written.h"

namespace starling::analysis {
namespace {

std::vector<uint32_t> ranks_of(const std::vector<HostRoom>& rooms) {
    std::vector<uint32_t> out;
    for (const HostRoom& room : rooms) out.push_back(room.ranks);
    return out;
}

std::vector<HostRoom> rooms(std::vector<uint32_t> slots) {
    std::vector<HostRoom> out;
    for (const uint32_t n : slots) out.push_back({std::string(1, static_cast<char>('a' + out.size())), n});
    return out;
}

std::vector<uint32_t> counts(const std::vector<uint32_t>& host_of_rank, size_t hosts) {
    std::vector<uint32_t> out(hosts, 0);
    for (const uint32_t host : host_of_rank) ++out[host];
    return out;
}

using Numbers = std::vector<uint32_t>;

TEST(Rooms, AreForAllRanksAndNoMore) {
    EXPECT_EQ(ranks_of(rooms_for(rooms({8, 8, 8}), 16)), (Numbers{8, 8}));
    EXPECT_EQ(ranks_of(rooms_for(rooms({8, 8, 8}), 20)), (Numbers{8, 8, 4}));
    EXPECT_EQ(ranks_of(rooms_for(rooms({2, 4, 2}), 16)), (Numbers{4, 8, 4}));
    EXPECT_EQ(ranks_of(rooms_for(rooms({0, 0, 0}), 8)), (Numbers{3, 3, 2}));
    EXPECT_EQ(ranks_of(rooms_for(rooms({4, 0}), 6)), (Numbers{4, 2}));
}

TEST(Place, FindsGroupsThatAreScattered) {
    // Ranks with equal numbers modulo 8 communicate; in rank order all of this traffic is between hosts.
    std::vector<Pair> pairs;
    for (uint32_t a = 0; a < 64; ++a)
        for (uint32_t b = a + 8; b < 64; b += 8) pairs.push_back({a, b, {10, 1000}, {}});
    const auto eight = rooms({8, 8, 8, 8, 8, 8, 8, 8});
    const std::vector<uint32_t> placed = place(pairs, 64, eight);
    EXPECT_EQ(counts(placed, 8), Numbers(8, 8));
    EXPECT_EQ(bytes_between(pairs, placed), 0);
    EXPECT_EQ(placed[0], 0u);
    EXPECT_EQ(place(pairs, 64, eight), placed);
}

TEST(Place, AGridIsCutIntoBlocks) {
    Written file = begin(64, 8);
    add_phase(file, 64, "p", 1, 1, 0, torus(8, 8, 10));
    const Plan plan = make_plan(file.read());
    // Rows of 8 ranks have 16 links to other hosts each; blocks of 2 x 4 have 12. Scotch must find nearly all of that gain.
    EXPECT_EQ(plan.bytes_in_order, 64 * 2000);
    EXPECT_LE(plan.bytes_placed, 0.8 * plan.bytes_in_order);
    EXPECT_EQ(counts(plan.host_of_rank, 8), Numbers(8, 8));
}

TEST(Place, RespectsUnevenHosts) {
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
        std::vector<Pair> pairs;
        for (uint32_t a = 0; a < 40; ++a)
            for (uint32_t b = a + 1; b < 40; ++b)
                if (random() % 8 == 0) pairs.push_back({a, b, {1.0 + random() % 50, 1.0 + random() % 5000}, {}});
        const auto uneven = rooms({3, 17, 1, 11, 8});
        const std::vector<uint32_t> placed = place(pairs, 40, uneven);
        ASSERT_EQ(placed.size(), 40u);
        EXPECT_EQ(counts(placed, 5), (Numbers{3, 17, 1, 11, 8}));
    }
}

TEST(Place, LeavesWhatIsGood) {
    // In a chain of neighbors rank order is optimal: no rank file is needed.
    Written file = begin(32, 8);
    Matrix chain;
    for (uint32_t i = 0; i + 1 < 32; ++i) chain[i].emplace_back(i + 1, 40);
    add_phase(file, 32, "p", 1, 1, 0, chain);
    EXPECT_TRUE(make_plan(file.read()).host_of_rank.empty());
}

TEST(Place, TheRankFileSaysIt) {
    EXPECT_EQ(rank_file({0, 1, 0}, rooms({2, 1})),
              "# mpiexec --rankfile: ranks with much traffic share a host\nrank 0=a slot=0\nrank 1=b slot=0\nrank 2=a slot=1\n");
}

}  // namespace
}  // namespace starling::analysis
