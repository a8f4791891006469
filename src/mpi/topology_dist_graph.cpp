// Distributed graph topologies: each process gets to know its own neighbours only.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/request.h"
#include "comm/info.h"
#include "mpi/topology.h"
#include "mpi/topology_common.h"

namespace starling::mpi {

using collective::Task;
using comm::Comm;
using comm::DistGraphTopology;
using Edges = std::vector<DistGraphTopology::Edge>;

namespace {

struct FullEdge {
    int32_t source, destination, weight;
};

// Brings everyone's edges to everyone.
Task gather_edges(Comm& comm, const std::vector<FullEdge>& mine, std::vector<FullEdge>& all) {
    collective::View v = collective::View::all(collective::exchange_of(comm));
    std::vector<int64_t> bytes(static_cast<size_t>(v.n)), offsets(bytes.size());
    const int64_t my_bytes = static_cast<int64_t>(mine.size() * sizeof(FullEdge));
    const auto& type = collective::byte_type();
    const collective::Blocks counts(bytes.data(), sizeof my_bytes, type);
    v.note(co_await collective::allgather(v, &my_bytes, sizeof my_bytes, type, counts));
    if (v.error) co_return v.error;
    int64_t total = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        offsets[i] = total;
        total += bytes[i];
    }
    all.resize(static_cast<size_t>(total) / sizeof(FullEdge));
    const collective::Blocks blocks(all.data(), Counts(bytes.data()), Counts(offsets.data()), type);
    co_return co_await collective::allgather(v, mine.data(), my_bytes, type, blocks);
}

int check_ranks(int count, const int ranks[], int size, const char* name) {
    if (count < 0) return fail(MPI_ERR_ARG, "the number of %s, %d, is negative", name, count);
    if (count > 0 && !ranks) return fail(MPI_ERR_ARG, "argument %s is a null pointer", name);
    for (int i = 0; i < count; ++i)
        if (ranks[i] < 0 || ranks[i] >= size)
            return fail(MPI_ERR_RANK, "%s names rank %d in a communicator of %d", name, ranks[i], size);
    return MPI_SUCCESS;
}

int check_weights(int count, const int weights[], const char* name) {
    if (weights == MPI_UNWEIGHTED) return MPI_SUCCESS;
    if (count > 0 && (!weights || weights == MPI_WEIGHTS_EMPTY))
        return fail(MPI_ERR_ARG, "argument %s has no weights for %d edges", name, count);
    for (int i = 0; i < count; ++i)
        if (weights[i] < 0) return fail(MPI_ERR_ARG, "weight %d in %s is negative", weights[i], name);
    return MPI_SUCCESS;
}

Edges read_edges(int count, const int ranks[], const int weights[]) {
    Edges edges;
    for (int i = 0; i < count; ++i) edges.push_back({ranks[i], weights == MPI_UNWEIGHTED ? 1 : weights[i]});
    return edges;
}

int check_info(MPI_Info info) {
    if (info == MPI_INFO_NULL || comm::from_handle(info)) return MPI_SUCCESS;
    return fail(MPI_ERR_INFO, "the info object is not valid; was it freed?");
}

void write_edges(int max, const Edges& edges, int ranks[], int weights[], bool weighted) {
    const int count = std::min(max, static_cast<int>(edges.size()));
    for (int i = 0; i < count; ++i) {
        ranks[i] = edges[static_cast<size_t>(i)].rank;
        if (weighted && weights && weights != MPI_UNWEIGHTED) weights[i] = edges[static_cast<size_t>(i)].weight;
    }
}

}  // namespace

int Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree,
                               const int destinations[], const int destweights[], MPI_Info info, int,
                               MPI_Comm* comm_dist_graph) {
    Lock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    if (!comm_dist_graph) return null_argument(base, "comm_dist_graph");
    error = check_ranks(indegree, sources, base->size, "sources");
    if (!error) error = check_ranks(outdegree, destinations, base->size, "destinations");
    if (!error) error = check_weights(indegree, sourceweights, "sourceweights");
    if (!error) error = check_weights(outdegree, destweights, "destweights");
    if (!error) error = check_info(info);
    if (error) return raise(base, error);
    auto graph = std::make_shared<DistGraphTopology>();
    graph->weighted = sourceweights != MPI_UNWEIGHTED;
    graph->sources = read_edges(indegree, sources, sourceweights);
    graph->destinations = read_edges(outdegree, destinations, destweights);
    return make_with_topology(*base, base->size, std::move(graph), comm_dist_graph);
}

int Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int, MPI_Comm* comm_dist_graph) {
    Lock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    if (!comm_dist_graph || (n > 0 && !degrees)) return null_argument(base, comm_dist_graph ? "degrees" : "comm_dist_graph");
    error = check_ranks(n, sources, base->size, "sources");
    int total = 0;
    for (int i = 0; i < n && !error; ++i) {
        if (degrees[i] < 0) error = fail(MPI_ERR_ARG, "degree %d is negative", degrees[i]);
        total += degrees[i];
    }
    if (!error) error = check_ranks(total, destinations, base->size, "destinations");
    if (!error) error = check_weights(total, weights, "weights");
    if (!error) error = check_info(info);
    if (error) return raise(base, error);
    std::vector<FullEdge> mine, all;
    for (int i = 0, at = 0; i < n; ++i)
        for (int k = 0; k < degrees[i]; ++k, ++at)
            mine.push_back({sources[i], destinations[at], weights == MPI_UNWEIGHTED ? 1 : weights[at]});
    const comm::Kept kept(base);
    error = collective::run(gather_edges(*base, mine, all));
    if (error) return raise(base, error);
    auto graph = std::make_shared<DistGraphTopology>();
    graph->weighted = weights != MPI_UNWEIGHTED;
    for (const FullEdge& edge : all) {
        if (edge.source == base->rank) graph->destinations.push_back({edge.destination, edge.weight});
        if (edge.destination == base->rank) graph->sources.push_back({edge.source, edge.weight});
    }
    return make_with_topology(*base, base->size, std::move(graph), comm_dist_graph);
}

int Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<DistGraphTopology>(comm, c, error);
    if (!graph) return error;
    if (!indegree || !outdegree || !weighted) return null_argument(c, "indegree, outdegree or weighted");
    *indegree = static_cast<int>(graph->sources.size());
    *outdegree = static_cast<int>(graph->destinations.size());
    *weighted = graph->weighted;
    return MPI_SUCCESS;
}

int Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                         int destinations[], int destweights[]) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* graph = find_topology<DistGraphTopology>(comm, c, error);
    if (!graph) return error;
    if ((maxindegree > 0 && !sources) || (maxoutdegree > 0 && !destinations))
        return null_argument(c, "sources or destinations");
    write_edges(maxindegree, graph->sources, sources, sourceweights, graph->weighted);
    write_edges(maxoutdegree, graph->destinations, destinations, destweights, graph->weighted);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
