#include "comm/node_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace starling::comm {
namespace {

std::vector<int> identity(int size) {
    std::vector<int> out(static_cast<size_t>(size));
    std::iota(out.begin(), out.end(), 0);
    return out;
}

CartTopology cart(std::vector<int> dims, bool periodic = false) {
    CartTopology out;
    out.periodic.assign(dims.size(), periodic);
    out.dims = std::move(dims);
    return out;
}

/// Returns the number of edges between nodes on different hosts.
int between_hosts(const std::vector<WeightedGraph::WeightedEdge>& edges, const std::vector<int>& process_of,
                  const std::vector<int>& host_of) {
    const auto host = [&](uint32_t node) { return host_of[static_cast<size_t>(process_of[node])]; };
    return static_cast<int>(std::count_if(edges.begin(), edges.end(), [&](const auto& e) { return host(e.a) != host(e.b); }));
}

TEST(NodeOrder, AGridIsCutIntoBlocks) {
    const CartTopology grid = cart({4, 4});
    const auto edges = edges_of(grid, 16);
    EXPECT_EQ(edges.size(), 24u);
    const std::vector<int> host_of{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    std::vector<int> order = order_nodes(host_of, edges);
    EXPECT_EQ(between_hosts(edges, identity(16), host_of), 12);
    EXPECT_EQ(between_hosts(edges, order, host_of), 8);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, identity(16));
}

TEST(NodeOrder, PeriodicGridsHaveEdgesAroundTheBorder) {
    EXPECT_EQ(edges_of(cart({4, 4}, true), 16).size(), 32u);
    EXPECT_EQ(edges_of(cart({5}, true), 5).size(), 5u);
}

TEST(NodeOrder, OneHostOrNoEdgesKeepTheRanks) {
    const auto edges = edges_of(cart({4, 2}), 8);
    EXPECT_EQ(order_nodes({0, 0, 0, 0, 0, 0, 0, 0}, edges), identity(8));
    EXPECT_EQ(order_nodes({0, 1, 0, 1}, {}), identity(4));
    EXPECT_EQ(order_nodes({}, {}), identity(0));
    // A line in two halves can't be cut better.
    EXPECT_EQ(order_nodes({0, 0, 0, 1, 1, 1}, edges_of(cart({6}), 6)), identity(6));
}

TEST(NodeOrder, RoundRobinRanksOfALineAreGathered) {
    const auto edges = edges_of(cart({8}), 8);
    const std::vector<int> host_of{0, 1, 0, 1, 0, 1, 0, 1};
    EXPECT_EQ(between_hosts(edges, identity(8), host_of), 7);
    EXPECT_EQ(between_hosts(edges, order_nodes(host_of, edges), host_of), 1);
}

TEST(NodeOrder, AGraphHasItsOwnEdges) {
    GraphTopology graph;
    graph.index = {1, 2, 3, 4};
    graph.edges = {3, 2, 1, 0};
    const std::vector<int> host_of{0, 0, 1, 1};
    EXPECT_EQ(between_hosts(edges_of(graph), order_nodes(host_of, edges_of(graph)), host_of), 0);
}

}  // namespace
}  // namespace starling::comm
