#include "base/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace starling {
namespace {

/// A grid whose points have edges of weight 1 to the next ones, row by row.
WeightedGraph grid(uint32_t rows, uint32_t columns) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < columns; ++column) {
            const uint32_t at = row * columns + column;
            if (column + 1 < columns) edges.push_back({at, at + 1, 1});
            if (row + 1 < rows) edges.push_back({at, at + columns, 1});
        }
    }
    return {rows * columns, std::move(edges)};
}

std::vector<uint32_t> in_order(uint32_t groups, uint32_t each) {
    std::vector<uint32_t> out;
    for (uint32_t group = 0; group < groups; ++group) out.insert(out.end(), each, group);
    return out;
}

TEST(Grouping, EdgesInBothDirectionsAreOne) {
    const WeightedGraph graph(3, {{0, 1, 5}, {1, 0, 2}, {2, 2, 9}, {1, 2, 0}});
    ASSERT_EQ(graph.of(0).size(), 1u);
    EXPECT_EQ(graph.of(0)[0].weight, 7u);
    EXPECT_TRUE(graph.of(2).empty());
    EXPECT_EQ(graph.between({0, 1, 1}), 7u);
    EXPECT_EQ(graph.between({0, 0, 1}), 0u);
}

TEST(Grouping, BlocksOfAGridAreBetterThanItsRows) {
    const WeightedGraph graph = grid(8, 8);
    const std::vector<uint32_t> rows = in_order(8, 8), found = find_groups(graph, rows, 8);
    EXPECT_EQ(graph.between(rows), 56u);
    EXPECT_LE(graph.between(found), 36u);  // blocks of 2 x 4 have 32
    for (uint32_t group = 0; group < 8; ++group) EXPECT_EQ(std::count(found.begin(), found.end(), group), 8);
}

TEST(Grouping, UnequalGroupsKeepTheirSizes) {
    const WeightedGraph graph = grid(3, 4);
    const std::vector<uint32_t> start{0, 1, 1, 2, 0, 1, 1, 1, 1, 2, 2, 1}, found = find_groups(graph, start, 3);
    EXPECT_LT(graph.between(found), graph.between(start));
    for (uint32_t group = 0; group < 3; ++group)
        EXPECT_EQ(std::count(found.begin(), found.end(), group), std::count(start.begin(), start.end(), group));
}

TEST(Grouping, NothingMovesWithoutAGain) {
    const WeightedGraph best = grid(2, 4);
    const std::vector<uint32_t> halves{0, 0, 1, 1, 0, 0, 1, 1};
    EXPECT_EQ(find_groups(best, halves, 2), halves);
    const WeightedGraph none(4, {});
    EXPECT_EQ(find_groups(none, {1, 0, 1, 0}, 2), (std::vector<uint32_t>{1, 0, 1, 0}));
    // All partners of all: each order has the same weight between groups.
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (uint32_t a = 0; a < 6; ++a)
        for (uint32_t b = 0; b < a; ++b) edges.push_back({a, b, 3});
    EXPECT_EQ(find_groups({6, edges}, {0, 1, 2, 0, 1, 2}, 3), (std::vector<uint32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Grouping, TheOrderOfTheEdgesDoesNotMatter) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (uint32_t i = 0; i < 64; ++i)
        for (const uint32_t step : {5u, 11u, 16u}) edges.push_back({i, (i + step) % 64, 1 + i % 7});
    const std::vector<uint32_t> start = in_order(8, 8), one = find_groups({64, edges}, start, 8);
    std::reverse(edges.begin(), edges.end());
    for (WeightedGraph::WeightedEdge& edge : edges) std::swap(edge.a, edge.b);
    EXPECT_EQ(find_groups({64, edges}, start, 8), one);
}

TEST(Grouping, GroupsThatAreTooLargeAreBalanced) {
    const WeightedGraph graph = grid(2, 4);
    const std::vector<uint32_t> found = improve_groups(graph, {4, 4}, {0, 0, 0, 1, 0, 0, 0, 1});
    EXPECT_EQ(std::count(found.begin(), found.end(), 0u), 4);
    EXPECT_EQ(graph.between(found), 2u);
}

}  // namespace
}  // namespace starling
