#include "comm/neighborhood.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "comm/comm.h"
#include "comm/topology.h"

namespace starling::comm {

namespace {

void add_edge(std::vector<NeighborEdge>& edges, int rank, int block) {
    if (rank != MPI_PROC_NULL) edges.push_back({rank, block});
}

/// In each dimension the first message is sent down, and the first receive is from above. A message sent down arrives from above, so this
/// order also matches if both neighbors are one process, or this process itself.
void find(const CartTopology& grid, int me, Neighborhood& near) {
    near.sources = near.destinations = 2 * grid.dimensions();
    for (int d = 0; d < grid.dimensions(); ++d) {
        const int below = grid.neighbor(me, d, -1), above = grid.neighbor(me, d, 1);
        add_edge(near.sends, below, 2 * d);
        add_edge(near.sends, above, 2 * d + 1);
        add_edge(near.receives, above, 2 * d + 1);
        add_edge(near.receives, below, 2 * d);
    }
    near.everyone = !near.sends.empty();  // In a grid either all processes have neighbors, or none has.
}

void find(const GraphTopology& graph, int me, Neighborhood& near) {
    for (const int rank : graph.neighbors(me)) {
        const NeighborEdge edge{rank, near.sources++};
        near.sends.push_back(edge);
        near.receives.push_back(edge);
    }
    near.destinations = near.sources;
    near.everyone = true;
    for (int rank = 0; rank < static_cast<int>(graph.index.size()); ++rank) near.everyone &= !graph.neighbors(rank).empty();
}

void find(const DistGraphTopology& graph, Neighborhood& near) {
    for (const auto& edge : graph.sources) near.receives.push_back({edge.rank, near.sources++});
    for (const auto& edge : graph.destinations) near.sends.push_back({edge.rank, near.destinations++});
    near.everyone = graph.everyone_has_edges;
}

bool is_mutual(const Neighborhood& near) {
    std::vector<int> sources;
    sources.reserve(near.receives.size());
    for (const NeighborEdge& from : near.receives) sources.push_back(from.rank);
    std::sort(sources.begin(), sources.end());
    return std::all_of(near.sends.begin(), near.sends.end(),
                       [&](const NeighborEdge& to) { return std::binary_search(sources.begin(), sources.end(), to.rank); });
}

/// Checks that the graph has as many edges from a to b as from b to a. Every process sends to its neighbors and receives from them, so a
/// missing edge would leave a receive without a message.
int check_both_ways(const GraphTopology& graph) {
    std::vector<std::pair<int, int>> there, back;
    there.reserve(graph.edges.size());
    for (int rank = 0; rank < static_cast<int>(graph.index.size()); ++rank)
        for (const int neighbor : graph.neighbors(rank)) there.emplace_back(rank, neighbor);
    back.reserve(there.size());
    for (const auto& [from, to] : there) back.emplace_back(to, from);
    std::sort(there.begin(), there.end());
    std::sort(back.begin(), back.end());
    const auto [odd, other] = std::mismatch(there.begin(), there.end(), back.begin());
    if (odd == there.end()) return MPI_SUCCESS;
    const auto [from, to] = std::min(*odd, *other);
    const auto times = [&](int a, int b) { return std::count(there.begin(), there.end(), std::pair(a, b)); };
    return fail(MPI_ERR_TOPOLOGY,
                "the graph has %d edges from node %d to node %d, but %d in the other direction; neighborhood collectives need "
                "equal numbers (or a distributed graph)",
                static_cast<int>(times(from, to)), from, to, static_cast<int>(times(to, from)));
}

}  // namespace

int neighborhood_of(Comm& comm, const Neighborhood*& found) {
    if (!comm.neighborhood) {
        auto near = std::make_unique<Neighborhood>();
        if (const auto* grid = topology_of<CartTopology>(comm)) {
            find(*grid, comm.rank, *near);
        } else if (const auto* whole = topology_of<GraphTopology>(comm)) {
            if (const int error = check_both_ways(*whole)) return error;
            find(*whole, comm.rank, *near);
        } else if (const auto* graph = topology_of<DistGraphTopology>(comm)) {
            find(*graph, *near);
        } else {
            return fail(MPI_ERR_TOPOLOGY,
                        "the communicator has no topology, so its processes have no neighbors; use one made "
                        "by MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create");
        }
        near->mutual = is_mutual(*near);
        comm.neighborhood = std::move(near);
    }
    found = comm.neighborhood.get();
    return MPI_SUCCESS;
}

}  // namespace starling::comm
