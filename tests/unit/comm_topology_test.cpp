#include "comm/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <vector>

namespace starling::comm {
namespace {

// Calls `call` with every non-increasing factorization of n into k factors of at most `limit`.
void for_each_factorization(int n, int k, int limit, std::vector<int>& begun, const auto& call) {
    if (k == 0) {
        if (n == 1) call(begun);
        return;
    }
    for (int first = 1; first <= std::min(n, limit); ++first) {
        if (n % first) continue;
        begun.push_back(first);
        for_each_factorization(n / first, k - 1, first, begun, call);
        begun.pop_back();
    }
}

// Minimizes the difference between largest and smallest factor, then maximizes the smallest, then minimizes the others.
std::vector<int> best_factors(int n, int k) {
    std::vector<int> begun, best;
    const auto order = [](const std::vector<int>& dims) { return std::tuple(dims.front() - dims.back(), -dims.back(), dims); };
    for_each_factorization(n, k, n, begun, [&](const std::vector<int>& dims) {
        if (best.empty() || order(dims) < order(best)) best = dims;
    });
    return best;
}

TEST(Dims, AsEvenAsPossible) {
    for (int n = 1; n <= 300; ++n) {
        for (int k = 1; k <= 4; ++k) {
            std::vector<int> dims(static_cast<size_t>(k), 0);
            ASSERT_TRUE(balance(n, dims));
            ASSERT_EQ(dims, best_factors(n, k)) << n << " in " << k;
        }
    }
}

// MPI demands factors "as close to each other as possible". In these cases other factors have a smaller maximum.
TEST(Dims, SmallestDifference) {
    const auto in_three = [](int n) {
        std::vector<int> dims(3, 0);
        EXPECT_TRUE(balance(n, dims));
        return dims;
    };
    EXPECT_EQ(in_three(5040), (std::vector<int>{21, 16, 15}));
    EXPECT_EQ(in_three(10800), (std::vector<int>{27, 20, 20}));
}

TEST(Dims, ManyDivisors) {
    for (size_t k = 2; k <= 10; ++k) {
        std::vector<int> dims(k, 0);
        ASSERT_TRUE(balance(1102701600, dims));
        EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()), 1102701600);
        EXPECT_TRUE(std::is_sorted(dims.rbegin(), dims.rend()));
    }
}

TEST(Dims, KeepsGivenDimensions) {
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
        EXPECT_EQ(cart.rank_at(coords), -1) << "the coordinate is out of range in a dimension that is not periodic";
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
