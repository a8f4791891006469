// Tests neighborhood collectives on grids, graphs and distributed graphs, also with borders, several edges between two processes and edges
// from a process to itself. All five kinds run blocking, non-blocking and persistent, many at a time. Also tests errors.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"

namespace {

int rank, size;

/// The sender's end of an edge: block `block` of the send buffer of rank `rank`; -1 beyond a border.
struct End {
    int rank, block;
};

/// A communicator with a topology, and the source that the standard requires for each received block.
struct Topology {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<End> sources;
    std::vector<int> destinations;  ///< destination of each edge; -1: beyond a border
    ~Topology() {
        if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
    }
};

std::unique_ptr<Topology> grid(std::vector<int> dims, std::vector<int> periods) {
    auto made = std::make_unique<Topology>();
    OK(MPI_Cart_create(MPI_COMM_WORLD, (int)dims.size(), dims.data(), periods.data(), 0, &made->comm));
    if (made->comm == MPI_COMM_NULL) return made;
    for (int d = 0; d < (int)dims.size(); d++) {
        int below, above;
        OK(MPI_Cart_shift(made->comm, d, 1, &below, &above));
        if (below == MPI_PROC_NULL) below = -1;
        if (above == MPI_PROC_NULL) above = -1;
        made->sources.insert(made->sources.end(), {{below, 2 * d + 1}, {above, 2 * d}});
        made->destinations.insert(made->destinations.end(), {below, above});
    }
    return made;
}

/// Makes a distributed graph from lists of edges, each in its sender's order; the order of the receivers' lists is random.
std::unique_ptr<Topology> make_dist_graph(const std::vector<std::vector<int>>& all, bool adjacent, uint64_t seed) {
    auto made = std::make_unique<Topology>();
    std::vector<int> sources;
    for (int r = 0; r < size; r++)
        for (int to : all[r])
            if (to == rank) sources.push_back(r);
    uint64_t own = seed + (uint64_t)rank;
    for (size_t i = sources.size(); i > 1; i--) std::swap(sources[i - 1], sources[random_below(&own, (int)i)]);
    std::vector<int> mine = all[rank];
    if (adjacent) {
        std::vector<int> one(std::max(sources.size(), mine.size()) + 1, 1);
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, (int)sources.size(), sources.data(), one.data(), (int)mine.size(),
                                          mine.data(), one.data(), MPI_INFO_NULL, 0, &made->comm));
    } else {
        int degree = (int)mine.size();
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, mine.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &made->comm));
    }
    int in, out, weighted;
    OK(MPI_Dist_graph_neighbors_count(made->comm, &in, &out, &weighted));
    EXPECT_INT(in, sources.size());
    made->destinations.resize(out);
    std::vector<int> weights(std::max(in, out) + 1);
    OK(MPI_Dist_graph_neighbors(made->comm, in, sources.data(), weights.data(), out, made->destinations.data(),
                                weights.data()));
    // The n-th edge from one process to another is the n-th among the edges between them in the lists of both processes. Checking this
    // requires every rank's list of destinations, because the library may have reordered it.
    std::vector<int> counts(size), places(size);
    OK(MPI_Allgather(&out, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD));
    int total = 0;
    for (int r = 0; r < size; r++) places[r] = total, total += counts[r];
    std::vector<int> lists(total + 1);
    OK(MPI_Allgatherv(made->destinations.data(), out, MPI_INT, lists.data(), counts.data(), places.data(), MPI_INT,
                      MPI_COMM_WORLD));
    std::vector<int> seen(size);
    for (int from : sources) {
        int block = -1;
        for (int n = seen[from]++; n >= 0; n--) do
                block++;
            while (lists[places[from] + block] != rank);
        made->sources.push_back({from, block});
    }
    return made;
}

std::vector<std::vector<int>> random_edges(uint64_t* random, int most) {
    std::vector<std::vector<int>> all(size);
    for (auto& to : all)
        for (int n = random_below(random, most + 1); n > 0; n--) to.push_back(random_below(random, size));
    return all;
}

/// Makes a ring in both directions, with a second edge between 0 and 1 and a loop at 0.
std::unique_ptr<Topology> graph() {
    auto made = std::make_unique<Topology>();
    std::vector<std::vector<int>> all(size);
    for (int r = 0; r < size; r++) all[r] = {(r + 1) % size, (r + size - 1) % size};
    if (size > 1) all[0].push_back(1), all[1].push_back(0);
    all[0].push_back(0);
    std::vector<int> index, edges;
    for (const auto& to : all) {
        edges.insert(edges.end(), to.begin(), to.end());
        index.push_back((int)edges.size());
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &made->comm));
    made->destinations = all[rank];
    std::vector<int> seen(size);
    for (int from : all[rank]) {
        int block = -1;
        for (int n = seen[from]++; n >= 0; n--) do
                block++;
            while (all[from][block] != rank);
        made->sources.push_back({from, block});
    }
    return made;
}

enum Kind { kAllgather, kAllgatherv, kAlltoall, kAlltoallv, kAlltoallw, kKinds };
enum Form { kBlocking, kNonblocking, kPersistent };

constexpr int kUntouched = -77;

int element(uint64_t key, int from, int block, int i) { return (int)((key * 37 + from * 1009 + block * 131 + i) % 100003); }

/// One operation with its buffers.
struct Operation {
    const Topology& on;
    Kind kind;
    Form form;
    uint64_t key;
    int most;
    std::vector<int> out, in;
    std::vector<int> out_counts, out_places, in_counts, in_places;
    std::vector<MPI_Aint> out_bytes, in_bytes;
    std::vector<MPI_Datatype> out_types, in_types;
    MPI_Datatype strided = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;

    // The distance between ints in alltoallw's send buffer: 2, so that the types of the two sides differ.
    int stride() const { return kind == kAlltoallw ? 2 : 1; }
    bool to_all() const { return kind == kAllgather || kind == kAllgatherv; }
    int count_of(int from, int block) const {
        if (kind == kAllgather || kind == kAlltoall) return most;
        if (from < 0) return 1;
        return (int)((key + from * 7 + (to_all() ? 0 : block) * 13) % (most + 1));
    }

    Operation(const Topology& topology, Kind its_kind, Form its_form, uint64_t its_key, int its_most)
        : on(topology), kind(its_kind), form(its_form), key(its_key), most(its_most) {
        const int blocks = to_all() ? 1 : (int)on.destinations.size();
        for (int b = 0; b < blocks; b++) {
            out_counts.push_back(count_of(rank, b));
            out_places.push_back((int)out.size());
            out_bytes.push_back((MPI_Aint)(out.size() * sizeof(int)));
            out.resize(out.size() + out_counts[b] * stride(), kUntouched);
        }
        for (const End& end : on.sources) {
            in_counts.push_back(count_of(end.rank, end.block));
            in_places.push_back((int)in.size());
            in_bytes.push_back((MPI_Aint)(in.size() * sizeof(int)));
            in.resize(in.size() + in_counts.back());
        }
        if (kind == kAlltoallw) {
            OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &strided));
            OK(MPI_Type_commit(&strided));
        }
        out_types.assign(out_counts.size(), strided);
        in_types.assign(in_counts.size(), MPI_INT);
        // No buffer pointer is null, even if the buffer is empty.
        out.push_back(0), in.push_back(0);
        if (form == kPersistent) call();
    }

    void fill() {
        for (size_t b = 0; b < out_counts.size(); b++)
            for (int i = 0; i < out_counts[b]; i++) out[out_places[b] + i * stride()] = element(key, rank, (int)b, i);
        std::fill(in.begin(), in.end(), kUntouched);
    }

    void call() {
        const MPI_Comm c = on.comm;
        const void* s = out.data();
        void* r = in.data();
        const int n = most;
        const int *sc = out_counts.data(), *sd = out_places.data(), *rc = in_counts.data(), *rd = in_places.data();
        const MPI_Aint *sb = out_bytes.data(), *rb = in_bytes.data();
        const MPI_Datatype *st = out_types.data(), *rt = in_types.data();
        const MPI_Datatype t = MPI_INT;
        const MPI_Info none = MPI_INFO_NULL;
        switch (kind * 3 + form) {
            case kAllgather * 3 + kBlocking:
                OK(MPI_Neighbor_allgather(s, n, t, r, n, t, c));
                break;
            case kAllgather * 3 + kNonblocking:
                OK(MPI_Ineighbor_allgather(s, n, t, r, n, t, c, &request));
                break;
            case kAllgatherv * 3 + kBlocking:
                OK(MPI_Neighbor_allgatherv(s, sc[0], t, r, rc, rd, t, c));
                break;
            case kAllgatherv * 3 + kNonblocking:
                OK(MPI_Ineighbor_allgatherv(s, sc[0], t, r, rc, rd, t, c, &request));
                break;
            case kAlltoall * 3 + kBlocking:
                OK(MPI_Neighbor_alltoall(s, n, t, r, n, t, c));
                break;
            case kAlltoall * 3 + kNonblocking:
                OK(MPI_Ineighbor_alltoall(s, n, t, r, n, t, c, &request));
                break;
            case kAlltoallv * 3 + kBlocking:
                OK(MPI_Neighbor_alltoallv(s, sc, sd, t, r, rc, rd, t, c));
                break;
            case kAlltoallv * 3 + kNonblocking:
                OK(MPI_Ineighbor_alltoallv(s, sc, sd, t, r, rc, rd, t, c, &request));
                break;
            case kAlltoallw * 3 + kBlocking:
                OK(MPI_Neighbor_alltoallw(s, sc, sb, st, r, rc, rb, rt, c));
                break;
            case kAlltoallw * 3 + kNonblocking:
                OK(MPI_Ineighbor_alltoallw(s, sc, sb, st, r, rc, rb, rt, c, &request));
                break;
            case kAllgather * 3 + kPersistent:
                OK(MPI_Neighbor_allgather_init(s, n, t, r, n, t, c, none, &request));
                break;
            case kAllgatherv * 3 + kPersistent:
                OK(MPI_Neighbor_allgatherv_init(s, sc[0], t, r, rc, rd, t, c, none, &request));
                break;
            case kAlltoall * 3 + kPersistent:
                OK(MPI_Neighbor_alltoall_init(s, n, t, r, n, t, c, none, &request));
                break;
            case kAlltoallv * 3 + kPersistent:
                OK(MPI_Neighbor_alltoallv_init(s, sc, sd, t, r, rc, rd, t, c, none, &request));
                break;
            case kAlltoallw * 3 + kPersistent:
                OK(MPI_Neighbor_alltoallw_init(s, sc, sb, st, r, rc, rb, rt, c, none, &request));
                break;
            default:
                fail_at(__FILE__, __LINE__, "kind", "%d", (int)(none == MPI_INFO_NULL));
        }
        if (strided != MPI_DATATYPE_NULL) OK(MPI_Type_free(&strided));  // the operation keeps the type alive
    }

    void start() {
        fill();
        if (form == kPersistent)
            OK(MPI_Start(&request));
        else
            call();
    }

    void end() {
        if (form != kBlocking) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (size_t b = 0; b < in_counts.size(); b++)
            for (int i = 0; i < in_counts[b]; i++) {
                const End& from = on.sources[b];
                const int wanted = from.rank < 0 ? kUntouched : element(key, from.rank, to_all() ? 0 : from.block, i);
                CHECK(in[in_places[b] + i] == wanted, "kind %d, form %d, block %d from %d, element %d of %d: %d, wanted %d",
                      kind, form, (int)b, from.rank, i, in_counts[b], in[in_places[b] + i], wanted);
            }
    }

    ~Operation() {
        if (form == kPersistent) OK(MPI_Request_free(&request));
        EXPECT_INT(request == MPI_REQUEST_NULL, 1);
    }
};

constexpr int kForms = 3;

/// Runs all kinds in all forms, with few bytes and with many; then many at a time, completed in a different order on each rank.
void try_out(const Topology& on, uint64_t seed) {
    if (on.comm == MPI_COMM_NULL) return;
    for (int most : {1, 6, 9000})
        for (int kind = 0; kind < kKinds; kind++)
            for (int form = 0; form < kForms; form++) {
                Operation operation(on, (Kind)kind, (Form)form, (uint64_t)most + kind, most);
                for (int turn = 0; turn < (form == kPersistent ? 3 : 1); turn++) {
                    operation.start();
                    operation.end();
                }
            }
    std::vector<std::unique_ptr<Operation>> open;
    uint64_t state = seed, own = seed + (uint64_t)rank;
    uint64_t* const random = &state;
    for (int i = 0; i < 24; i++) {
        const Kind kind = (Kind)random_below(random, kKinds);
        const Form form = (Form)random_below(random, kForms);
        const int most = 1 + random_below(random, i % 8 == 0 ? 9000 : 40);
        auto operation = std::make_unique<Operation>(on, kind, form, (uint64_t)i + 100, most);
        operation->start();
        if (form == kBlocking)
            operation->end();
        else
            open.push_back(std::move(operation));
    }
    while (!open.empty()) {
        const int next = random_below(&own, (int)open.size());
        open[next]->end();
        open.erase(open.begin() + next);
    }
}

/// Frees the communicator while an operation is in progress.
void free_early() {
    auto ring = grid({size}, {1});
    Operation operation(*ring, kAlltoall, kNonblocking, 5, 3);
    operation.start();
    OK(MPI_Comm_free(&ring->comm));
    operation.end();
}

void refuse() {
    int one = 1, two[2] = {1, 2}, four[4];
    MPI_Request request;
    MPI_Comm dup, cart, odd;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Neighbor_allgather(&one, 1, MPI_INT, two, 1, MPI_INT, dup), MPI_ERR_TOPOLOGY);
    EXPECT_ERROR(MPI_Ineighbor_allgather(&one, 1, MPI_INT, two, 1, MPI_INT, dup, &request), MPI_ERR_TOPOLOGY);
    EXPECT_INT(request == MPI_REQUEST_NULL, 1);
    int periodic = 1;
    OK(MPI_Cart_create(dup, 1, &size, &periodic, 0, &cart));
    EXPECT_ERROR(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, two, 1, MPI_INT, cart), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Neighbor_alltoall(two, 1, MPI_INT, two, 1, MPI_INT, cart), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Neighbor_alltoall(two, -1, MPI_INT, four, 1, MPI_INT, cart), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Neighbor_alltoall(two, 1, MPI_DATATYPE_NULL, four, 1, MPI_INT, cart), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Neighbor_allgatherv(two, 1, MPI_INT, four, NULL, NULL, MPI_INT, cart), MPI_ERR_ARG);
    // A refused call has not started anything: the next one succeeds.
    OK(MPI_Neighbor_alltoall(two, 1, MPI_INT, four, 1, MPI_INT, cart));
    CHECK(four[0] == 2 && four[1] == 1, "%d %d", four[0], four[1]);
    OK(MPI_Comm_free(&cart));
    if (size > 1) {
        // Makes a graph with edges from rank 0 to all others and none back.
        std::vector<int> index(size, size - 1), edges;
        for (int r = 1; r < size; r++) edges.push_back(r);
        OK(MPI_Graph_create(dup, size, index.data(), edges.data(), 0, &odd));
        EXPECT_ERROR(MPI_Neighbor_allgather(&one, 1, MPI_INT, four, 0, MPI_INT, odd), MPI_ERR_TOPOLOGY);
        OK(MPI_Comm_free(&odd));
    }
    OK(MPI_Comm_free(&dup));
}

/// No process has neighbors: the buffers must not be accessed.
void nobody() {
    MPI_Comm alone;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &alone));
    OK(MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone));
    OK(MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL, MPI_INT, alone));
    OK(MPI_Comm_free(&alone));
}

/// One process has no neighbors and omits the calls, as programs do. The others, in a ring, must not wait for it.
void bystander() {
    const int last = size - 1;
    const bool stands_by = rank == last;
    int left = stands_by ? 0 : (rank + last - 1) % last, right = stands_by ? 0 : (rank + 1) % last;
    std::vector<MPI_Comm> rings(2);
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, !stands_by, &left, MPI_UNWEIGHTED, !stands_by, &right, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &rings[0]));
    const int degree = !stands_by;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &rings[1]));
    for (MPI_Comm ring : rings) {
        for (int round = 0; round < 3 && !stands_by; round++) {
            int out = 100 * round + rank, in = -1, gathered = -1;
            OK(MPI_Neighbor_alltoall(&out, 1, MPI_INT, &in, 1, MPI_INT, ring));
            EXPECT_INT(in, 100 * round + left);
            MPI_Request requests[2];
            OK(MPI_Neighbor_alltoall_init(&out, 1, MPI_INT, &in, 1, MPI_INT, ring, MPI_INFO_NULL, &requests[0]));
            OK(MPI_Neighbor_allgather_init(&out, 1, MPI_INT, &gathered, 1, MPI_INT, ring, MPI_INFO_NULL, &requests[1]));
            for (int start = 0; start < 3; start++) {
                out = 1000 * start + rank;
                in = gathered = -1;
                OK(MPI_Startall(2, requests));
                OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
                EXPECT_INT(in, 1000 * start + left);
                EXPECT_INT(gathered, 1000 * start + left);
            }
            for (MPI_Request& request : requests) OK(MPI_Request_free(&request));
        }
        // The process without neighbors may free the communicator while the operations of the others are still in progress.
        OK(MPI_Comm_free(&ring));
    }
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    uint64_t seed = start_seed(11), random = seed;
    int dims[2] = {0, 0};
    OK(MPI_Dims_create(size, 2, dims));
    try_out(*grid({size}, {1}), ++seed);
    try_out(*grid({size}, {0}), ++seed);
    try_out(*grid({dims[0], dims[1]}, {1, 1}), ++seed);
    try_out(*grid({1, dims[1], dims[0]}, {1, 0, 1}), ++seed);
    if (size > 2) try_out(*grid({size - 1}, {1}), ++seed);
    try_out(*grid({}, {}), ++seed);
    try_out(*graph(), ++seed);
    for (int i = 0; i < 4; i++) try_out(*make_dist_graph(random_edges(&random, i * 2), i % 2 == 0, seed + i), seed + i);
    free_early();
    refuse();
    nobody();
    if (size > 1) bystander();
    OK(MPI_Finalize());
    return 0;
}
