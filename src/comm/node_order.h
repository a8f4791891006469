// The order of a topology's nodes over processes (reorder of MPI_Cart_create and the graphs; MPI 5.0 section 8.2).
#pragma once

#include <vector>

#include "base/grouping.h"
#include "comm/topology.h"

namespace starling::comm {

/// Returns the process of each node, so that nodes with heavy edges share a host. `host_of` has the number of each process's host, from 0;
/// there are as many nodes as processes. Nodes keep the processes with their numbers if the graph gains nothing. The result depends only on
/// the arguments.
std::vector<int> order_nodes(const std::vector<int>& host_of, std::vector<WeightedGraph::WeightedEdge> edges);

/// Returns the edges between the nodes of a topology and their neighbors.
std::vector<WeightedGraph::WeightedEdge> edges_of(const CartTopology& cart, int nodes);
std::vector<WeightedGraph::WeightedEdge> edges_of(const GraphTopology& graph);

}  // namespace starling::comm
