// Tests non-blocking collectives: many at a time on one communicator and on several, mixed with messages of equal tags, completed in a
// random order that differs between ranks. Also tests progress by MPI_Test alone.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"

namespace {

int rank, size;

struct Operation {
    int kind, count, root;
    std::vector<int> in, out;
    MPI_Request request = MPI_REQUEST_NULL;
};

int value(int kind, int r, int i) { return (kind + 1) * 1000 + r * 10 + i % 7; }

void start(Operation& o, MPI_Comm comm) {
    o.in.assign(o.count * (size_t)size, 0);
    o.out.assign(o.count * (size_t)size, -1);
    for (int i = 0; i < o.count; i++) o.in[i] = value(o.kind, rank, i);
    switch (o.kind) {
        case 0:
            OK(MPI_Ibarrier(comm, &o.request));
            break;
        case 1:
            if (rank == o.root) std::copy_n(o.in.begin(), o.count, o.out.begin());
            OK(MPI_Ibcast(o.out.data(), o.count, MPI_INT, o.root, comm, &o.request));
            break;
        case 2:
            OK(MPI_Iallreduce(o.in.data(), o.out.data(), o.count, MPI_INT, MPI_SUM, comm, &o.request));
            break;
        case 3:
            OK(MPI_Iallgather(o.in.data(), o.count, MPI_INT, o.out.data(), o.count, MPI_INT, comm, &o.request));
            break;
        case 4:
            for (int r = 0; r < size; r++)
                for (int i = 0; i < o.count; i++) o.in[(size_t)r * o.count + i] = value(o.kind, rank, i) + r;
            OK(MPI_Ialltoall(o.in.data(), o.count, MPI_INT, o.out.data(), o.count, MPI_INT, comm, &o.request));
            break;
        case 5:
            OK(MPI_Ireduce(o.in.data(), o.out.data(), o.count, MPI_INT, MPI_MAX, o.root, comm, &o.request));
            break;
        case 6:
            OK(MPI_Iscan(o.in.data(), o.out.data(), o.count, MPI_INT, MPI_SUM, comm, &o.request));
            break;
        default:
            OK(MPI_Igather(o.in.data(), o.count, MPI_INT, o.out.data(), o.count, MPI_INT, o.root, comm, &o.request));
    }
}

void check(const Operation& o) {
    for (int i = 0; i < o.count; i++) {
        int sum = 0, up_to_me = 0, most = 0;
        for (int r = 0; r < size; r++) {
            sum += value(o.kind, r, i);
            if (r <= rank) up_to_me += value(o.kind, r, i);
            most = std::max(most, value(o.kind, r, i));
        }
        if (o.kind == 1) EXPECT_INT(o.out[i], value(1, o.root, i));
        if (o.kind == 2) EXPECT_INT(o.out[i], sum);
        if (o.kind == 5 && rank == o.root) EXPECT_INT(o.out[i], most);
        if (o.kind == 6) EXPECT_INT(o.out[i], up_to_me);
        for (int r = 0; r < size; r++) {
            if (o.kind == 3 || (o.kind == 7 && rank == o.root)) EXPECT_INT(o.out[(size_t)r * o.count + i], value(o.kind, r, i));
            if (o.kind == 4) EXPECT_INT(o.out[(size_t)r * o.count + i], value(4, r, i) + rank);
        }
    }
}

void burst(uint64_t seed, const std::vector<MPI_Comm>& comms, int count) {
    uint64_t shared = seed, own = seed * 31 + rank;
    std::vector<Operation> all(count);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::vector<int> messages(count), received(count);
    std::vector<MPI_Request> pairs(2 * count);
    for (int i = 0; i < count; i++) {
        Operation& o = all[i];
        o.kind = random_below(&shared, 8);
        o.count = 1 + random_below(&shared, random_below(&shared, 4) ? 20 : 20000 / size);
        o.root = random_below(&shared, size);
        start(o, comms[random_below(&shared, (int)comms.size())]);
        messages[i] = rank * 1000 + i;
        OK(MPI_Isend(&messages[i], 1, MPI_INT, to, i % 4, comms[0], &pairs[i]));
        OK(MPI_Irecv(&received[i], 1, MPI_INT, from, i % 4, comms[0], &pairs[count + i]));
    }
    std::vector<int> order(count);
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) std::swap(order[i], order[random_below(&own, i + 1)]);
    for (int i : order) {
        if (random_below(&own, 3) == 0) {
            int done = 0;
            while (!done) OK(MPI_Test(&all[i].request, &done, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Wait(&all[i].request, MPI_STATUS_IGNORE));
        }
        CHECK(all[i].request == MPI_REQUEST_NULL);
        check(all[i]);
    }
    OK(MPI_Waitall(2 * count, pairs.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; i++) EXPECT_INT(received[i], from * 1000 + i);
}

// MPI_Ibarrier must not complete before every rank has called it.
void barrier_waits() {
    if (size == 1) return;
    MPI_Request request;
    int done = 0, token = 0;
    if (rank == 0) {
        for (int i = 1; i < size; i++) OK(MPI_Recv(&token, 1, MPI_INT, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    } else {
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        for (int i = 0; i < 50; i++) {
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(!done, "the barrier completed before rank 0 had entered it");
        }
        OK(MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    uint64_t seed = start_seed(4711);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    std::vector<MPI_Comm> comms(3);
    for (MPI_Comm& comm : comms) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < (size > 8 ? 2 : 6); i++) burst(seed + i, comms, size > 8 ? 20 : 60);
    burst(seed, {comms[0]}, 40);
    barrier_waits();
    for (MPI_Comm& comm : comms) OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
