// Graph topologies, in which every process stores the whole graph.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "mpi/topology/topology.h"
#include "mpi/topology/topology_common.h"

namespace starling::mpi {

using comm::Comm;
using comm::GraphTopology;

namespace {

int check_graph(int nodes, const int index[], const int edges[], int size) {
    if (nodes < 0) return fail(MPI_ERR_ARG, "the number of nodes, %d, is negative", nodes);
    if (nodes > size)
        return fail(MPI_ERR_TOPOLOGY, "a graph of %d nodes needs as many processes, but the communicator has %d", nodes, size);
    if (nodes > 0 && !index) return null_pointer("index");
    int end = 0;
    for (int i = 0; i < nodes; ++i) {
        if (index[i] < end)
            return fail(MPI_ERR_ARG,
                        "index[%d] is less than the element before it; the elements must not "
                        "decrease",
                        i);
        end = index[i];
    }
    if (end > 0 && !edges) return null_pointer("edges");
    for (int i = 0; i < end; ++i)
        if (edges[i] < 0 || edges[i] >= nodes)
            return fail(MPI_ERR_ARG, "edge %d leads to node %d, but the graph has %d nodes", i, edges[i], nodes);
    return MPI_SUCCESS;
}

std::shared_ptr<GraphTopology> graph_of(int nodes, const int index[], const int edges[]) {
    auto graph = std::make_shared<GraphTopology>();
    graph->index.assign(index, index + nodes);
    if (nodes > 0) graph->edges.assign(edges, edges + index[nodes - 1]);
    return graph;
}

std::vector<int> ranks_of_graph(Comm& base, const GraphTopology& graph, bool reorder) {
    return ranks_of_nodes(base, static_cast<int>(graph.index.size()), reorder, [&] { return comm::edges_of(graph); });
}

void copy_up_to(int max, const std::vector<int>& values, int* out) {
    const auto count = std::min<size_t>(static_cast<size_t>(std::max(max, 0)), values.size());
    std::copy_n(values.begin(), count, out);
}

}  // namespace

int Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder, MPI_Comm* comm_graph) {
    MakingLock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    error = comm_graph ? check_graph(nnodes, indx, edges, base->size) : null_pointer("comm_graph");
    auto graph = graph_of(error ? 0 : nnodes, indx, edges);
    const std::vector<int> ranks = ranks_of_graph(*base, *graph, reorder != 0);
    return make_with_topology(*base, ranks, std::move(graph), comm_graph, error);
}

int Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<GraphTopology>(comm, c, error);
    if (!graph) return error;
    if (!nnodes || !nedges) return null_argument(c, nnodes ? "nedges" : "nnodes");
    *nnodes = static_cast<int>(graph->index.size());
    *nedges = static_cast<int>(graph->edges.size());
    return MPI_SUCCESS;
}

int Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<GraphTopology>(comm, c, error);
    if (!graph) return error;
    if ((maxindex > 0 && !indx) || (maxedges > 0 && !edges)) return null_argument(c, "index or edges");
    copy_up_to(maxindex, graph->index, indx);
    copy_up_to(maxedges, graph->edges, edges);
    return MPI_SUCCESS;
}

int Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<GraphTopology>(comm, c, error);
    if (!graph) return error;
    if (rank < 0 || rank >= c->size) return bad_rank(c, rank);
    if (!nneighbors) return null_argument(c, "nneighbors");
    *nneighbors = static_cast<int>(graph->neighbors(rank).size());
    return MPI_SUCCESS;
}

int Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<GraphTopology>(comm, c, error);
    if (!graph) return error;
    if (rank < 0 || rank >= c->size) return bad_rank(c, rank);
    if (maxneighbors > 0 && !neighbors) return null_argument(c, "neighbors");
    const auto all = graph->neighbors(rank);
    const auto count = std::min<size_t>(static_cast<size_t>(std::max(maxneighbors, 0)), all.size());
    std::copy_n(all.begin(), count, neighbors);
    return MPI_SUCCESS;
}

int Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank) {
    Lock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm, error);
    if (!base) return error;
    if (!newrank) return null_argument(base, "newrank");
    error = check_graph(nnodes, indx, edges, base->size);
    if (error) return raise(base, error);
    *newrank = node_of(base->rank, ranks_of_graph(*base, *graph_of(nnodes, indx, edges), true));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
