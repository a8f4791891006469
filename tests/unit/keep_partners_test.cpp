#include "keep/partners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace starling::keep {
namespace {

std::map<int, int> wards_of(const std::vector<int>& partners) {
    std::map<int, int> wards;
    for (int partner : partners) ++wards[partner];
    return wards;
}

TEST(Partners, ASingleRankHasNoPartner) { EXPECT_EQ(partners_of({3}), std::vector<int>{-1}); }

TEST(Partners, OnOneHostTheNextRankIsThePartner) { EXPECT_EQ(partners_of({0, 0, 0}), (std::vector<int>{1, 2, 0})); }

TEST(Partners, AHostWithMostRanksHasPartnersOnTheOthers) {
    const std::vector<int> partners = partners_of({0, 0, 0, 0, 0, 1, 2});
    EXPECT_EQ(partners, (std::vector<int>{5, 6, 5, 6, 5, 0, 1}));
}

TEST(Partners, EveryPartnerIsOnAnotherHostAndHasOneWard) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        const int n = 2 + static_cast<int>(random() % 20);
        const unsigned kinds = 2 + random() % 5;
        std::vector<int> hosts(n);
        for (int& host : hosts) host = static_cast<int>(random() % kinds) * 3;
        const std::vector<int> partners = partners_of(hosts);
        std::map<int, int> sizes;
        for (int host : hosts) ++sizes[host];
        if (sizes.size() < 2) continue;
        int largest = 0;
        for (const auto& [host, size] : sizes) largest = std::max(largest, size);
        for (int rank = 0; rank < n; ++rank)
            ASSERT_NE(hosts[rank], hosts[partners[rank]]) << "round " << round << ", rank " << rank;
        for (const auto& [partner, wards] : wards_of(partners))
            ASSERT_LE(wards, largest > n / 2 ? (largest + n - largest - 1) / (n - largest) : 1) << "round " << round;
    }
}

}  // namespace
}  // namespace starling::keep
