// Distributed graph topologies: each process stores only its own edges.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "comm/info.h"
#include "mpi/topology/topology.h"
#include "mpi/topology/topology_common.h"

namespace starling::mpi {

using collective::Task;
using comm::Comm;
using comm::DistGraphTopology;
using GraphEdges = std::vector<DistGraphTopology::Edge>;

namespace {

struct FullEdge {
    int32_t source, destination, weight;
};

/// Sends each edge to the two processes that it connects. Takes time linear in the edges and the processes.
class Delivery {
  public:
    Delivery(const std::vector<FullEdge>& edges, int processes)
        : counts_(static_cast<size_t>(processes)), offsets_(counts_.size()) {
        each_target(edges, [this](size_t target, const FullEdge&) { counts_[target] += kBytes; });
        std::exclusive_scan(counts_.begin(), counts_.end(), offsets_.begin(), int64_t{0});
        edges_.resize(static_cast<size_t>(offsets_.back() + counts_.back()) / sizeof(FullEdge));
        std::vector<int64_t> next = offsets_;
        each_target(edges, [&](size_t target, const FullEdge& edge) {
            edges_[static_cast<size_t>(std::exchange(next[target], next[target] + kBytes)) / sizeof(FullEdge)] = edge;
        });
    }
    /// Receives the edges that other processes sent, in the order of their ranks.
    Task operator()(Comm& comm, std::vector<FullEdge>& got) {
        collective::View v = collective::View::all(collective::exchange_of(comm));
        const auto& type = collective::byte_type();
        std::vector<int64_t> counts(counts_.size()), offsets(counts_.size());
        v.note(co_await collective::alltoall(v, false, collective::Blocks(counts_.data(), sizeof(int64_t), type),
                                             collective::Blocks(counts.data(), sizeof(int64_t), type)));
        if (v.error) co_return v.error;
        std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), int64_t{0});
        got.resize(static_cast<size_t>(offsets.back() + counts.back()) / sizeof(FullEdge));
        const collective::Blocks out(edges_.data(), Counts(counts_.data()), Counts(offsets_.data()), type);
        const collective::Blocks in(got.data(), Counts(counts.data()), Counts(offsets.data()), type);
        co_return co_await collective::alltoall(v, false, out, in);
    }

  private:
    static constexpr int64_t kBytes = sizeof(FullEdge);
    template <class F>
    static void each_target(const std::vector<FullEdge>& edges, F visit) {
        for (const FullEdge& edge : edges) {
            visit(static_cast<size_t>(edge.source), edge);
            if (edge.destination != edge.source) visit(static_cast<size_t>(edge.destination), edge);
        }
    }

    std::vector<int64_t> counts_, offsets_;  ///< numbers of bytes to send to each process, and their offsets
    std::vector<FullEdge> edges_;
};

/// Exchanges whether every process has edges, and the class of an error that a process has found in its arguments.
Task agree_on_errors(Comm& comm, DistGraphTopology& graph, int mine, int& worst) {
    collective::View v = collective::View::all(collective::exchange_of(comm));
    const int32_t told = mine ? -mine : !graph.sources.empty() || !graph.destinations.empty();
    int32_t least = 0;
    v.note(
        co_await collective::allreduce(v, &told, &least, 1, datatype::predefined(MPI_INT32_T), datatype::predefined(MPI_MIN)));
    worst = least < 0 ? -least : MPI_SUCCESS;
    graph.everyone_has_edges = least > 0;
    co_return v.error;
}

/// The edges of all nodes, as each node's process has given them: first those from its sources, then those to its destinations.
struct AllEdges {
    std::vector<int32_t> counts;  ///< sources and destinations of node 0, of node 1, …
    std::vector<DistGraphTopology::Edge> edges;
};

/// The most edges that are gathered to reorder a graph; those of larger graphs keep their order, as each process gets all edges.
constexpr int64_t kMostGathered = 500'000;

/// Gives all edges to all processes. `all.edges` stays empty if there are more than kMostGathered.
Task gather_edges(Comm& comm, const DistGraphTopology& mine, AllEdges& all) {
    collective::View v = collective::View::all(collective::exchange_of(comm));
    const auto& byte = collective::byte_type();
    const auto size = static_cast<size_t>(comm.size);
    const int32_t counts[2] = {static_cast<int32_t>(mine.sources.size()), static_cast<int32_t>(mine.destinations.size())};
    all.counts.resize(2 * size);
    v.note(co_await collective::allgather(v, counts, sizeof counts, byte,
                                          collective::Blocks(all.counts.data(), sizeof counts, byte)));
    if (v.error) co_return v.error;
    std::vector<int64_t> bytes(size), offsets(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (int64_t{all.counts[2 * i]} + all.counts[2 * i + 1]) * static_cast<int64_t>(sizeof(DistGraphTopology::Edge));
    std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), int64_t{0});
    const int64_t edges = (offsets.back() + bytes.back()) / static_cast<int64_t>(sizeof(DistGraphTopology::Edge));
    if (edges > kMostGathered) co_return v.error;
    GraphEdges own = mine.sources;
    own.insert(own.end(), mine.destinations.begin(), mine.destinations.end());
    all.edges.resize(static_cast<size_t>(edges));
    const collective::Blocks in(all.edges.data(), Counts(bytes.data()), Counts(offsets.data()), byte);
    co_return co_await collective::allgather(v, own.data(), static_cast<int64_t>(own.size() * sizeof own[0]), byte, in);
}

/// Returns the edges of the graph, by their sources and destinations. An edge that only its destination has given does not count.
std::vector<WeightedGraph::WeightedEdge> whole_graph(const AllEdges& all) {
    std::vector<WeightedGraph::WeightedEdge> out;
    size_t at = 0;
    for (size_t node = 0; 2 * node < all.counts.size(); ++node) {
        at += static_cast<size_t>(all.counts[2 * node]);
        for (int32_t i = 0; i < all.counts[2 * node + 1]; ++i, ++at)
            out.push_back({static_cast<uint32_t>(node), static_cast<uint32_t>(all.edges[at].rank),
                           static_cast<uint64_t>(all.edges[at].weight)});
    }
    return out;
}

/// Gives `graph` the edges of a node.
void take_node(const AllEdges& all, int node, DistGraphTopology& graph) {
    const auto index = 2 * static_cast<ptrdiff_t>(node);
    const auto begin = all.edges.begin() + std::accumulate(all.counts.begin(), all.counts.begin() + index, ptrdiff_t{0});
    const auto middle = begin + all.counts[static_cast<size_t>(index)];
    graph.sources.assign(begin, middle);
    graph.destinations.assign(middle, middle + all.counts[static_cast<size_t>(index) + 1]);
}

/// Chooses the ranks of the graph's nodes, and gives this process the edges of its node: another process has named them.
int reorder_graph(Comm& base, DistGraphTopology& graph, std::vector<int>& ranks) {
    AllEdges all;
    if (const int lost = collective::run(gather_edges(base, graph, all))) return lost;
    if (all.edges.empty()) return MPI_SUCCESS;
    ranks = ranks_of_nodes(base, base.size, true, [&] { return whole_graph(all); });
    take_node(all, node_of(base.rank, ranks), graph);
    return MPI_SUCCESS;
}

bool has_several_hosts(Comm& base) {
    const std::vector<int> host_of = comm::host_numbers(base.local_group(), 0, base.size);
    return std::any_of(host_of.begin(), host_of.end(), [](int host) { return host > 0; });
}

/// Creates the communicator, unless this process (`error`) or another one had bad arguments. In that case all return an error and none
/// waits.
int make(Comm& base, const std::shared_ptr<DistGraphTopology>& graph, bool reorder, int error, MPI_Comm* made) {
    const comm::ReferenceGuard kept(&base);
    const std::string why(failure_text());
    int worst = MPI_SUCCESS;
    int lost = collective::run(agree_on_errors(base, *graph, error, worst));
    if (error) return raise(&base, fail(error, "%s", why.c_str()));
    if (lost) return raise(&base, lost);
    if (worst)
        return raise(&base, fail(worst, "another process passed invalid arguments; that process's error text names them"));
    std::vector<int> ranks = ranks_of_nodes(base, base.size, false, [] { return std::vector<WeightedGraph::WeightedEdge>(); });
    if (reorder && has_several_hosts(base)) lost = reorder_graph(base, *graph, ranks);
    if (lost) return raise(&base, lost);
    return make_with_topology(base, ranks, graph, made);
}

int check_ranks(int64_t count, const int ranks[], int size, const char* name) {
    if (count < 0) return fail(MPI_ERR_ARG, "the number of %s, %lld, is negative", name, static_cast<long long>(count));
    if (count > 0 && !ranks) return null_pointer(name);
    for (int64_t i = 0; i < count; ++i)
        if (ranks[i] < 0 || ranks[i] >= size)
            return fail(MPI_ERR_RANK, "%s names rank %d, which is not valid in a communicator of %d processes", name, ranks[i],
                        size);
    return MPI_SUCCESS;
}

int check_weights(int64_t count, const int weights[], const char* name) {
    if (weights == MPI_UNWEIGHTED) return MPI_SUCCESS;
    if (count > 0 && (!weights || weights == MPI_WEIGHTS_EMPTY))
        return fail(MPI_ERR_ARG, "argument %s contains no weights, but there are %lld edges", name,
                    static_cast<long long>(count));
    for (int64_t i = 0; i < count; ++i)
        if (weights[i] < 0) return fail(MPI_ERR_ARG, "weight %d in %s is negative", weights[i], name);
    return MPI_SUCCESS;
}

GraphEdges read_edges(int count, const int ranks[], const int weights[]) {
    GraphEdges edges;
    for (int i = 0; i < count; ++i) edges.push_back({ranks[i], weights == MPI_UNWEIGHTED ? 1 : weights[i]});
    return edges;
}

int check_made(const MPI_Comm* made) { return made ? MPI_SUCCESS : null_pointer("comm_dist_graph"); }

int add_degrees(int n, const int degrees[], int64_t& total) {
    if (n > 0 && !degrees) return null_pointer("degrees");
    for (int i = 0; i < n; ++i) {
        if (degrees[i] < 0) return fail(MPI_ERR_ARG, "degree %d is negative", degrees[i]);
        total += degrees[i];
    }
    return MPI_SUCCESS;
}

std::vector<FullEdge> read_full_edges(int n, int64_t total, const int sources[], const int degrees[], const int destinations[],
                                      const int weights[]) {
    std::vector<FullEdge> edges;
    edges.reserve(static_cast<size_t>(total));
    for (int64_t i = 0, at = 0; i < n; ++i)
        for (int k = 0; k < degrees[i]; ++k, ++at)
            edges.push_back({sources[i], destinations[at], weights == MPI_UNWEIGHTED ? 1 : weights[at]});
    return edges;
}

int check_info(MPI_Info info) {
    if (info == MPI_INFO_NULL || comm::from_handle(info)) return MPI_SUCCESS;
    return fail(MPI_ERR_INFO, "the info object is not valid; was it freed?");
}

void write_edges(int max, const GraphEdges& edges, int ranks[], int weights[], bool weighted) {
    const int count = std::min(max, static_cast<int>(edges.size()));
    for (int i = 0; i < count; ++i) {
        ranks[i] = edges[static_cast<size_t>(i)].rank;
        if (weighted && weights && weights != MPI_UNWEIGHTED) weights[i] = edges[static_cast<size_t>(i)].weight;
    }
}

}  // namespace

int Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree,
                               const int destinations[], const int destweights[], MPI_Info info, int reorder,
                               MPI_Comm* comm_dist_graph) {
    MakingLock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    error = check_made(comm_dist_graph);
    if (!error) error = check_ranks(indegree, sources, base->size, "sources");
    if (!error) error = check_ranks(outdegree, destinations, base->size, "destinations");
    if (!error) error = check_weights(indegree, sourceweights, "sourceweights");
    if (!error) error = check_weights(outdegree, destweights, "destweights");
    if (!error) error = check_info(info);
    auto graph = std::make_shared<DistGraphTopology>();
    graph->weighted = sourceweights != MPI_UNWEIGHTED;
    if (!error) {
        graph->sources = read_edges(indegree, sources, sourceweights);
        graph->destinations = read_edges(outdegree, destinations, destweights);
    }
    return make(*base, graph, reorder != 0, error, comm_dist_graph);
}

int Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int reorder, MPI_Comm* comm_dist_graph) {
    MakingLock lock;
    int error = MPI_SUCCESS;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    error = check_made(comm_dist_graph);
    if (!error) error = check_ranks(n, sources, base->size, "sources");
    int64_t total = 0;
    if (!error) error = add_degrees(n, degrees, total);
    if (!error) error = check_ranks(total, destinations, base->size, "destinations");
    if (!error) error = check_weights(total, weights, "weights");
    if (!error) error = check_info(info);
    const comm::ReferenceGuard kept(base);
    const std::string why(failure_text());
    std::vector<FullEdge> got;
    // A process with bad arguments contributes no edges, but takes part because the other processes wait for it.
    Delivery deliver(error ? std::vector<FullEdge>() : read_full_edges(n, total, sources, degrees, destinations, weights),
                     base->size);
    const int lost = collective::run(deliver(*base, got));
    if (error)
        fail(error, "%s", why.c_str());
    else if (lost)
        return raise(base, lost);
    auto graph = std::make_shared<DistGraphTopology>();
    graph->weighted = weights != MPI_UNWEIGHTED;
    for (const FullEdge& edge : got) {
        if (edge.source == base->rank) graph->destinations.push_back({edge.destination, edge.weight});
        if (edge.destination == base->rank) graph->sources.push_back({edge.source, edge.weight});
    }
    return make(*base, graph, reorder != 0, error, comm_dist_graph);
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
