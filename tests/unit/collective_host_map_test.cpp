// Maps of a collective's participants to hosts and their leaders.
#include <gtest/gtest.h>

#include <random>

#include "collective/core/host_map.h"

namespace {

using starling::collective::HostMap;
using starling::collective::make_host_map;

TEST(HostMap, OneHostHasNoLevels) { EXPECT_TRUE(make_host_map({7, 7, 7}, 0, 1).leaders.empty()); }

TEST(HostMap, OneProcessPerHostHasNoLevels) { EXPECT_TRUE(make_host_map({3, 1, 2}, 0, 1).leaders.empty()); }

TEST(HostMap, NumbersHostsByTheirLowestRank) {
    const HostMap map = make_host_map({5, 5, 2, 2, 2}, 10, 3);
    EXPECT_EQ(map.leaders, (std::vector<int>{10, 12}));
    EXPECT_EQ(map.mine, (std::vector<int>{12, 13, 14}));
    EXPECT_EQ(map.my_host, 1);
    EXPECT_EQ(map.my_place, 1);
    EXPECT_TRUE(map.contiguous);
    EXPECT_FALSE(map.leads());
}

TEST(HostMap, AgreesWithAPlainReference) {
    std::mt19937 random(4);
    for (int round = 0; round < 2000; ++round) {
        const int n = 1 + static_cast<int>(random() % 20), hosts = 1 + static_cast<int>(random() % 5);
        const int base = static_cast<int>(random() % 3) * 5;
        std::vector<int> identity;
        for (int i = 0; i < n; ++i)
            identity.push_back(100 - (random() % 2 ? static_cast<int>(random()) % hosts : i * hosts / n));
        for (int me = 0; me < n; ++me) {
            const HostMap map = make_host_map(identity, base, me);
            if (map.leaders.empty()) continue;
            ASSERT_EQ(map.mine[static_cast<size_t>(map.my_place)], base + me);
            for (int i = 0; i < n; ++i) {
                const int host = map.host_of(base + i);
                const bool same = identity[static_cast<size_t>(i)] == identity[static_cast<size_t>(me)];
                ASSERT_EQ(host == map.my_host, same);
                ASSERT_EQ(identity[static_cast<size_t>(map.leaders[static_cast<size_t>(host)] - base)],
                          identity[static_cast<size_t>(i)]);
                if (!same) continue;
                ASSERT_EQ(map.mine[static_cast<size_t>(map.place_of(base + i))], base + i);
            }
        }
    }
}

}  // namespace
