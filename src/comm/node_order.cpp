#include "comm/node_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace starling::comm {

std::vector<int> order_nodes(const std::vector<int>& host_of, std::vector<WeightedGraph::WeightedEdge> edges) {
    std::vector<int> process_of(host_of.size());
    std::iota(process_of.begin(), process_of.end(), 0);
    const int last = host_of.empty() ? 0 : *std::max_element(host_of.begin(), host_of.end());
    if (last == 0) return process_of;
    const auto hosts = static_cast<size_t>(last) + 1;
    const WeightedGraph graph(static_cast<uint32_t>(host_of.size()), std::move(edges));
    const std::vector<uint32_t> host_of_node =
        find_groups(graph, {host_of.begin(), host_of.end()}, static_cast<uint32_t>(hosts));
    // The nodes of a host get its processes in order.
    std::vector<std::vector<int>> processes(hosts);
    for (size_t process = host_of.size(); process-- > 0;)
        processes[static_cast<size_t>(host_of[process])].push_back(static_cast<int>(process));
    for (size_t node = 0; node < host_of.size(); ++node) {
        std::vector<int>& left = processes[host_of_node[node]];
        process_of[node] = left.back();
        left.pop_back();
    }
    return process_of;
}

std::vector<WeightedGraph::WeightedEdge> edges_of(const CartTopology& cart, int nodes) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (int node = 0; node < nodes; ++node)
        for (int dimension = 0; dimension < cart.dimensions(); ++dimension)
            if (const int next = cart.neighbor(node, dimension, 1); next >= 0)
                edges.push_back({static_cast<uint32_t>(node), static_cast<uint32_t>(next), 1});
    return edges;
}

std::vector<WeightedGraph::WeightedEdge> edges_of(const GraphTopology& graph) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (int node = 0; node < static_cast<int>(graph.index.size()); ++node)
        for (const int next : graph.neighbors(node))
            edges.push_back({static_cast<uint32_t>(node), static_cast<uint32_t>(next), 1});
    return edges;
}

}  // namespace starling::comm
