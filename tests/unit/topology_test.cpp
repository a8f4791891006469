#include "comm/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace starling::comm {
namespace {

// The best of all ways to write n as k factors in falling order: smallest first factor, then second, ...
std::vector<int> best_factors(int n, int k, int limit) {
    if (k == 0) return n == 1 ? std::vector<int>{} : std::vector<int>{-1};
    for (int first = 1; first <= std::min(n, limit); ++first) {
        if (n % first) continue;
        std::vector<int> rest = best_factors(n / first, k - 1, first);
        if (!rest.empty() && rest[0] == -1) continue;
        rest.insert(rest.begin(), first);
        return rest;
    }
    return {-1};
}

TEST(Dims, AsEvenAsPossible) {
    for (int n = 1; n <= 300; ++n) {
        for (int k = 1; k <= 4; ++k) {
            std::vector<int> dims(static_cast<size_t>(k), 0);
            ASSERT_TRUE(balance(n, dims));
            ASSERT_EQ(dims, best_factors(n, k, n)) << n << " in " << k;
        }
    }
}

TEST(Dims, KeepsWhatIsSet) {
    std::vector<int> dims{0, 3, 0};
    EXPECT_TRUE(balance(24, dims));
    EXPECT_EQ(dims, (std::vector<int>{4, 3, 2}));
    dims = {0, 5};
    EXPECT_FALSE(balance(24, dims));
    dims = {6, 4};
    EXPECT_TRUE(balance(24, dims));
    dims = {6, 2};
    EXPECT_FALSE(balance(24, dims));
    dims = {1 << 30, 1 << 30, 1 << 30, 0};
    EXPECT_FALSE(balance(24, dims));
}

TEST(Dims, LargeNumbers) {
    std::vector<int> dims(3, 0);
    EXPECT_TRUE(balance(1 << 30, dims));
    EXPECT_EQ(dims, (std::vector<int>{1 << 10, 1 << 10, 1 << 10}));
    std::vector<int> prime(2, 0);
    EXPECT_TRUE(balance(2147483647, prime));
    EXPECT_EQ(prime, (std::vector<int>{2147483647, 1}));
    std::vector<int> many(20, 0);
    EXPECT_TRUE(balance(1 << 20, many));
    EXPECT_EQ(many, std::vector<int>(20, 2));
}

TEST(Cart, CoordinatesAndRanks) {
    CartTopology cart;
    cart.dims = {3, 4, 2};
    cart.periodic = {true, false, true};
    for (int rank = 0; rank < 24; ++rank) {
        int coords[3];
        cart.coordinates(rank, coords);
        EXPECT_EQ(rank, (coords[0] * 4 + coords[1]) * 2 + coords[2]);
        EXPECT_EQ(cart.rank_at(coords), rank);
        coords[0] -= 3;
        coords[2] += 4;
        EXPECT_EQ(cart.rank_at(coords), rank) << "wraps around";
        coords[1] = 4;
        EXPECT_EQ(cart.rank_at(coords), -1) << "does not wrap around";
    }
}

TEST(Cart, Neighbors) {
    CartTopology cart;
    cart.dims = {3, 4};
    cart.periodic = {true, false};
    EXPECT_EQ(cart.neighbor(0, 0, 1), 4);
    EXPECT_EQ(cart.neighbor(0, 0, -1), 8);
    EXPECT_EQ(cart.neighbor(0, 0, -7), 8);
    EXPECT_EQ(cart.neighbor(0, 1, -1), MPI_PROC_NULL);
    EXPECT_EQ(cart.neighbor(3, 1, 1), MPI_PROC_NULL);
    EXPECT_EQ(cart.neighbor(3, 1, 0), 3);
}

TEST(Cart, OfNoDimensions) {
    CartTopology cart;
    EXPECT_EQ(cart.rank_at({}), 0);
}

TEST(Graph, Neighbors) {
    GraphTopology graph;
    graph.index = {2, 3, 3, 5};
    graph.edges = {1, 3, 0, 0, 2};
    const auto list = [&](int rank) {
        const auto span = graph.neighbors(rank);
        return std::vector<int>(span.begin(), span.end());
    };
    EXPECT_EQ(list(0), (std::vector<int>{1, 3}));
    EXPECT_EQ(list(1), (std::vector<int>{0}));
    EXPECT_TRUE(list(2).empty());
    EXPECT_EQ(list(3), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace starling::comm
