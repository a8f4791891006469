#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "launch/universe/placement.h"

namespace starling::launch {
namespace {

using Hosts = std::vector<uint32_t>;

std::vector<HostCapacity> rooms(std::vector<uint32_t> slots) {
    std::vector<HostCapacity> out;
    for (const uint32_t n : slots) out.push_back({n, 0, true});
    return out;
}

PlacementRequest request(uint32_t count, Mapping mapping = Mapping::slot) {
    PlacementRequest out;
    out.count = count;
    out.mapping = mapping;
    return out;
}

TEST(Placement, FillsHostByHost) {
    auto universe = rooms({2, 3, 1});
    EXPECT_EQ(place(request(5), universe), (Hosts{0, 0, 1, 1, 1}));
    EXPECT_EQ(universe[0].placed, 2u);
    EXPECT_EQ(universe[1].placed, 3u);
    // Only the last host has room for the next job.
    EXPECT_EQ(place(request(1), universe), (Hosts{2}));
}

TEST(Placement, CountsTheFreeSlotsOfUsableHosts) {
    auto universe = rooms({2, 3, 8});
    universe[2].usable = false;
    EXPECT_EQ(free_slots(request(1), universe), 5u);
    universe[0].placed = 1;
    universe[1].placed = 7;
    EXPECT_EQ(free_slots(request(1), universe), 1u);
    PlacementRequest named = request(1);
    named.hosts = {1};
    named.slots = {9};
    EXPECT_EQ(free_slots(named, universe), 2u) << "the request's own slots count";
}

TEST(Placement, WrapsAroundWhenAllIsFull) {
    auto universe = rooms({1, 2});
    EXPECT_EQ(place(request(7), universe), (Hosts{0, 1, 1, 0, 1, 1, 0}));
}

TEST(Placement, PlacesRoundRobinByHost) {
    auto universe = rooms({1, 4, 2});
    EXPECT_EQ(place(request(5, Mapping::node), universe), (Hosts{0, 1, 2, 0, 1}));
}

TEST(Placement, RanksMayBeNumberedHostByHostOrInTurn) {
    auto universe = rooms({1, 4, 2});
    EXPECT_EQ(place(request(5, Mapping::node_ranked_by_slot), universe), (Hosts{0, 0, 1, 1, 2}));
    universe = rooms({1, 3, 2});
    EXPECT_EQ(place(request(6, Mapping::slot_ranked_by_node), universe), (Hosts{0, 1, 2, 1, 2, 1}));
    EXPECT_EQ(universe[1].placed, 3u);
}

TEST(Placement, ObeysAFixedNumberPerHost) {
    auto universe = rooms({8, 1, 8});
    PlacementRequest two = request(7);
    two.per_host = 2;
    EXPECT_EQ(place(two, universe), (Hosts{0, 0, 1, 1, 2, 2, 0}));
}

TEST(Placement, UsesOnlyTheNamedHosts) {
    auto universe = rooms({4, 4, 4});
    PlacementRequest named = request(4);
    named.hosts = {2, 0};
    named.slots = {1, 0};
    EXPECT_EQ(place(named, universe), (Hosts{2, 0, 0, 0}));
    universe[2].usable = false;
    EXPECT_EQ(place(named, universe), (Hosts{0, 0, 0, 0}));
    universe[0].usable = false;
    EXPECT_TRUE(place(named, universe).empty());
}

TEST(Placement, SpawnsUseTheHostsWithMostFreeSlots) {
    auto universe = rooms({2, 2, 4});
    universe[0].placed = 2;
    PlacementRequest spawn = request(4);
    spawn.least_loaded = true;
    EXPECT_EQ(place(spawn, universe), (Hosts{1, 2, 2, 2}));
    EXPECT_EQ(place(spawn, universe), (Hosts{0, 1, 2, 2}));
}

TEST(Placement, RepeatedSpawnsKeepTheLoadEven) {
    std::mt19937 random(7);
    auto universe = rooms({1, 2, 4, 8, 16});
    for (int round = 0; round < 200; ++round) {
        PlacementRequest spawn = request(1 + random() % 9);
        spawn.least_loaded = true;
        ASSERT_EQ(place(spawn, universe).size(), spawn.count);
        double least = 1e9, most = 0;
        for (const HostCapacity& room : universe) {
            least = std::min(least, static_cast<double>(room.placed) / room.slots);
            most = std::max(most, static_cast<double>(room.placed) / room.slots);
        }
        ASSERT_LE(most - least, 1.0);
    }
}

TEST(Placement, SixtyFourChildrenOverEightHosts) {
    auto universe = rooms({8, 8, 8, 8, 8, 8, 8, 8});
    universe[0].placed = 1;  // the process that spawns the others
    PlacementRequest spawn = request(64);
    spawn.least_loaded = true;
    const Hosts placed = place(spawn, universe);
    for (uint32_t host = 0; host < 8; ++host) EXPECT_EQ(std::count(placed.begin(), placed.end(), host), 8);
    EXPECT_TRUE(std::is_sorted(placed.begin(), placed.end()));
}

TEST(Placement, ARankFileIsFollowed) {
    auto universe = rooms({1, 1, 1});
    PlacementRequest named = request(5);
    named.hosts = {2, 0};
    named.fixed = {0, 1, 1, 0, 1};
    EXPECT_EQ(place(named, universe), (Hosts{2, 0, 0, 2, 0}));
    EXPECT_EQ(universe[0].placed, 3u);
    universe[2].usable = false;
    EXPECT_TRUE(place(named, universe).empty());
    EXPECT_EQ(universe[0].placed, 3u);
}

TEST(Placement, TablesHaveOnlyTheHostsInUse) {
    Hosts host_of_rank{5, 5, 2, 5, 9};
    EXPECT_EQ(hosts_in_use(host_of_rank), (Hosts{5, 2, 9}));
    EXPECT_EQ(host_of_rank, (Hosts{0, 0, 1, 0, 2}));
}

}  // namespace
}  // namespace starling::launch
