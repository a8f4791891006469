// Tests persistent collectives: every kind is prepared once and started repeatedly with new data, on intra- and inter-communicators. Many
// run at a time, started in a different order on each rank, with blocking and non-blocking collectives between them. The communicator,
// datatype and operation are freed after the preparation. Also tests errors.
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "check.h"

namespace {

int rank, size;

int element(uint64_t key, int r, int i) { return (int)((key * 31 + (uint64_t)r * 17 + (uint64_t)i) % 1000); }

constexpr int kKinds = 17;

/// One operation on an intra-communicator: its buffers, its input at each start, and its expected output.
struct Operation {
    MPI_Comm comm;
    int kind, count, root;
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t key = 0;
    std::vector<int> out, in, counts, places, bytes;
    std::vector<MPI_Datatype> types;

    bool rooted_here() const { return rank == root; }
    /// Returns the size of rank r's block in the v forms; sizes differ.
    int block(int r) const { return (r * 3 + count) % (count + 1); }

    Operation(MPI_Comm on, int its_kind, int its_count, int its_root)
        : comm(on), kind(its_kind), count(its_count), root(its_root), types(size, MPI_INT) {
        int total = 0;
        for (int r = 0; r < size; r++) {
            counts.push_back(block(r));
            places.push_back(total);
            bytes.push_back(total * (int)sizeof(int));
            total += counts[r];
        }
        const size_t most = (size_t)std::max(total, count * size) + (size_t)(count * size) + 1;
        out.resize(most), in.resize(most);
        prepare();
    }

    void prepare() {
        int *o = out.data(), *i = in.data(), *c = counts.data(), *d = places.data(), *b = bytes.data();
        const MPI_Datatype t = MPI_INT;
        const MPI_Info none = MPI_INFO_NULL;
        const int n = count, mine = counts[rank];
        std::vector<int> same(size, mine), steps(size), byte_steps(size);
        for (int r = 0; r < size; r++) steps[r] = r * mine, byte_steps[r] = r * mine * (int)sizeof(int);
        sent = same, sent_places = steps, sent_bytes = byte_steps;
        int *s = sent.data(), *sd = sent_places.data(), *sb = sent_bytes.data();
        switch (kind) {
            case 0:
                OK(MPI_Barrier_init(comm, none, &request));
                break;
            case 1:
                OK(MPI_Bcast_init(i, n, t, root, comm, none, &request));
                break;
            case 2:
                OK(MPI_Gather_init(o, n, t, i, n, t, root, comm, none, &request));
                break;
            case 3:
                OK(MPI_Gatherv_init(o, mine, t, i, c, d, t, root, comm, none, &request));
                break;
            case 4:
                OK(MPI_Scatter_init(o, n, t, i, n, t, root, comm, none, &request));
                break;
            case 5:
                OK(MPI_Scatterv_init(o, c, d, t, i, mine, t, root, comm, none, &request));
                break;
            case 6:
                OK(MPI_Allgather_init(o, n, t, i, n, t, comm, none, &request));
                break;
            case 7:
                OK(MPI_Allgatherv_init(o, mine, t, i, c, d, t, comm, none, &request));
                break;
            case 8:
                OK(MPI_Alltoall_init(o, n, t, i, n, t, comm, none, &request));
                break;
            case 9:
                OK(MPI_Alltoallv_init(o, s, sd, t, i, c, d, t, comm, none, &request));
                break;
            case 10:
                OK(MPI_Alltoallw_init(o, s, sb, types.data(), i, c, b, types.data(), comm, none, &request));
                break;
            case 11:
                OK(MPI_Reduce_init(o, i, n, t, MPI_SUM, root, comm, none, &request));
                break;
            case 12:
                OK(MPI_Allreduce_init(o, i, n, t, MPI_MAX, comm, none, &request));
                break;
            case 13:
                OK(MPI_Reduce_scatter_block_init(o, i, n, t, MPI_SUM, comm, none, &request));
                break;
            case 14:
                OK(MPI_Reduce_scatter_init(o, i, c, t, MPI_SUM, comm, none, &request));
                break;
            case 15:
                OK(MPI_Scan_init(o, i, n, t, MPI_SUM, comm, none, &request));
                break;
            default:
                OK(MPI_Exscan_init(o, i, n, t, MPI_SUM, comm, none, &request));
        }
    }
    std::vector<int> sent, sent_places, sent_bytes;

    void fill() {
        key++;
        for (size_t i = 0; i < out.size(); i++) out[i] = element(key, rank, (int)i);
        std::fill(in.begin(), in.end(), -1);
        if (kind == 1 && rooted_here())
            for (int i = 0; i < count; i++) in[i] = element(key, root, i);
    }

    void start() {
        fill();
        OK(MPI_Start(&request));
    }

    int sum(int first, int last, int i) const {
        int total = 0;
        for (int r = first; r < last; r++) total += element(key, r, i);
        return total;
    }
    int most(int i) const {
        int best = -1;
        for (int r = 0; r < size; r++) best = std::max(best, element(key, r, i));
        return best;
    }

    std::vector<int> wanted() const {
        std::vector<int> w;
        const auto take = [&](int n, const std::function<int(int)>& f) {
            for (int i = 0; i < n; i++) w.push_back(f(i));
        };
        switch (kind) {
            case 0:
                break;
            case 1:
                take(count, [&](int i) { return element(key, root, i); });
                break;
            case 2:
            case 6:
                for (int r = 0; r < size && (kind == 6 || rooted_here()); r++)
                    take(count, [&](int i) { return element(key, r, i); });
                break;
            case 3:
            case 7:
                for (int r = 0; r < size && (kind == 7 || rooted_here()); r++)
                    take(counts[r], [&](int i) { return element(key, r, i); });
                break;
            case 4:
                take(count, [&](int i) { return element(key, root, rank * count + i); });
                break;
            case 5:
                take(counts[rank], [&](int i) { return element(key, root, places[rank] + i); });
                break;
            case 8:
                for (int r = 0; r < size; r++) take(count, [&](int i) { return element(key, r, rank * count + i); });
                break;
            case 9:
            case 10:
                for (int r = 0; r < size; r++) take(counts[r], [&](int i) { return element(key, r, rank * counts[r] + i); });
                break;
            case 11:
                if (rooted_here()) take(count, [&](int i) { return sum(0, size, i); });
                break;
            case 12:
                take(count, [&](int i) { return most(i); });
                break;
            case 13:
                take(count, [&](int i) { return sum(0, size, rank * count + i); });
                break;
            case 14:
                take(counts[rank], [&](int i) { return sum(0, size, places[rank] + i); });
                break;
            case 15:
                take(count, [&](int i) { return sum(0, rank + 1, i); });
                break;
            default:
                if (rank > 0) take(count, [&](int i) { return sum(0, rank, i); });
        }
        return w;
    }

    void check() const {
        const std::vector<int> w = wanted();
        for (size_t i = 0; i < w.size(); i++)
            CHECK(in[i] == w[i], "kind %d, count %d, start %d, element %d: %d, wanted %d", kind, count, (int)key, (int)i, in[i],
                  w[i]);
        if (kind != 1) EXPECT_INT(in[w.size()], -1);
    }

    ~Operation() {
        OK(MPI_Request_free(&request));
        EXPECT_INT(request == MPI_REQUEST_NULL, 1);
    }
};

void each_by_itself(MPI_Comm comm) {
    for (int count : {0, 2, 40, 3000, 30000})
        for (int kind = 0; kind < kKinds; kind++) {
            if (count * size > 100000) continue;
            Operation operation(comm, kind, count, (kind + count) % size);
            MPI_Status status;
            OK(MPI_Wait(&operation.request, &status));  // the request is inactive, so the call completes at once
            EXPECT_INT(status.MPI_SOURCE, MPI_ANY_SOURCE);
            for (int turn = 0; turn < 4; turn++) {
                operation.start();
                int done = turn % 2;
                if (done) OK(MPI_Wait(&operation.request, MPI_STATUS_IGNORE));
                while (!done) OK(MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE));
                CHECK(operation.request != MPI_REQUEST_NULL, "a persistent request must survive completion");
                operation.check();
            }
        }
}

/// Fourteen operations at a time, in several rounds: every rank starts and completes them in a different order.
void in_any_order(MPI_Comm comm, uint64_t seed) {
    uint64_t own = seed + (uint64_t)rank * 977;
    std::vector<std::unique_ptr<Operation>> all;
    for (int i = 0; i < 14; i++) {
        const int kind = random_below(&seed, kKinds), count = random_below(&seed, i % 4 == 0 ? 3000 : 30);
        all.push_back(std::make_unique<Operation>(comm, kind, count, random_below(&seed, size)));
    }
    for (int round = 0; round < 6; round++) {
        std::vector<int> order(all.size());
        for (size_t i = 0; i < order.size(); i++) order[i] = (int)i;
        const auto shuffle = [&] {
            for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random_below(&own, (int)i)]);
        };
        shuffle();
        const int between = random_below(&own, (int)order.size());
        MPI_Request barrier = MPI_REQUEST_NULL;
        for (int i = 0; i < (int)order.size(); i++) {
            if (i == between) {  // at a random position among the starts
                int one = 1, sum = 0;
                OK(MPI_Ibarrier(comm, &barrier));
                OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
                EXPECT_INT(sum, size);
            }
            all[order[i]]->start();
        }
        shuffle();
        for (int i : order) {
            OK(MPI_Wait(&all[i]->request, MPI_STATUS_IGNORE));
            all[i]->check();
        }
        OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    }
    // Starts all operations by MPI_Startall.
    std::vector<MPI_Request> handles;
    for (auto& operation : all) operation->fill(), handles.push_back(operation->request);
    OK(MPI_Startall((int)handles.size(), handles.data()));
    OK(MPI_Waitall((int)handles.size(), handles.data(), MPI_STATUSES_IGNORE));
    for (auto& operation : all) operation->check();
}

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; i++) ((int*)inout)[i] += ((int*)in)[i];
}

/// Communicator, datatype and operation are freed once the operation is prepared.
void freed_after() {
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request request;
    int out[2] = {0, 0}, in[2] = {0, 0};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_up, 1, &op));
    OK(MPI_Allreduce_init(out, in, 2, type, op, comm, MPI_INFO_NULL, &request));
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
    for (int turn = 0; turn < 5; turn++) {
        out[0] = rank, out[1] = turn;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT_INT(in[0], size * (size - 1) / 2);
        EXPECT_INT(in[1], size * turn);
    }
    OK(MPI_Request_free(&request));
}

/// MPI_IN_PLACE: one buffer for input and output.
void in_place() {
    std::vector<int> values(100);
    MPI_Request request;
    OK(MPI_Allreduce_init(MPI_IN_PLACE, values.data(), 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < 100; i++) values[i] = rank + i + turn;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < 100; i++) EXPECT_INT(values[i], size * (size - 1) / 2 + size * (i + turn));
    }
    OK(MPI_Request_free(&request));
}

/// Starts more operations than the shared memory has lanes (slots for non-blocking operations).
void very_many() {
    constexpr int kMany = 60;
    std::vector<MPI_Request> all(kMany);
    std::vector<int> in(kMany), out(kMany);
    for (int i = 0; i < kMany; i++)
        OK(MPI_Allreduce_init(&out[i], &in[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < kMany; i++) out[i] = i + rank + turn;
        OK(MPI_Startall(kMany, all.data()));
        OK(MPI_Waitall(kMany, all.data(), MPI_STATUSES_IGNORE));
        for (int i = 0; i < kMany; i++) EXPECT_INT(in[i], size * (i + turn) + size * (size - 1) / 2);
    }
    for (auto& request : all) OK(MPI_Request_free(&request));
}

/// Between two groups: sums over the remote group, a broadcast from one of its members, blocks from all of them.
void between_groups() {
    if (size < 2) return;
    const int side = rank % 2;
    MPI_Comm half, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 3, &inter));
    int others, me;
    OK(MPI_Comm_remote_size(inter, &others));
    OK(MPI_Comm_rank(inter, &me));
    const int root = side == 0 ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    int out = 0, sum = 0, word = 0;
    std::vector<int> blocks(others);
    MPI_Request requests[4];
    OK(MPI_Allreduce_init(&out, &sum, 1, MPI_INT, MPI_SUM, inter, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Bcast_init(&word, 1, MPI_INT, root, inter, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Allgather_init(&out, 1, MPI_INT, blocks.data(), 1, MPI_INT, inter, MPI_INFO_NULL, &requests[2]));
    OK(MPI_Barrier_init(inter, MPI_INFO_NULL, &requests[3]));
    for (int turn = 0; turn < 4; turn++) {
        out = rank + turn;
        word = side == 0 ? 70 + turn : -1;
        std::vector<MPI_Request> order(requests, requests + 4);
        if (rank % 3 == 1) std::reverse(order.begin(), order.end());
        OK(MPI_Startall(4, order.data()));
        OK(MPI_Waitall(4, order.data(), MPI_STATUSES_IGNORE));
        int wanted = 0;
        for (int r = 1 - side, i = 0; r < size; r += 2, i++) {
            wanted += r + turn;
            EXPECT_INT(blocks[i], r + turn);
        }
        EXPECT_INT(sum, wanted);
        EXPECT_INT(word, 70 + turn);
    }
    for (auto& request : requests) OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

void refuse() {
    MPI_Comm comm;
    MPI_Request request;
    int out = 1, in = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Bcast_init(&in, -1, MPI_INT, 0, comm, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    EXPECT_INT(request == MPI_REQUEST_NULL, 1);
    EXPECT_ERROR(MPI_Bcast_init(&in, 1, MPI_INT, size, comm, MPI_INFO_NULL, &request), MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Allreduce_init(&out, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Barrier_init(comm, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Neighbor_allgather_init(&out, 1, MPI_INT, &in, 1, MPI_INT, comm, MPI_INFO_NULL, &request),
                 MPI_ERR_TOPOLOGY);
    OK(MPI_Allreduce_init(&out, &in, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    EXPECT_ERROR(MPI_Start(&request), MPI_ERR_REQUEST);  // the request is active already
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(in, size);
    MPI_Request freed = request;
    OK(MPI_Request_free(&request));
    EXPECT_ERROR(MPI_Start(&freed), MPI_ERR_REQUEST);
    OK(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const uint64_t seed = start_seed(21);
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    each_by_itself(MPI_COMM_WORLD);
    in_any_order(MPI_COMM_WORLD, seed);
    for (uint64_t i = 1; i < 4; i++) in_any_order(dup, seed + i);
    OK(MPI_Comm_free(&dup));
    freed_after();
    in_place();
    very_many();
    between_groups();
    refuse();
    OK(MPI_Finalize());
    return 0;
}
