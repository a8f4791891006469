// One member of a collective operation is refused its n-th allocation, for each n, operation, form (blocking, non-blocking, persistent) and
// member. The library's reserve must serve it: the operation completes on all members, with the right data. With the argument `starve`, rank
// 0 gets no memory any more: its process must end, because the others wait for it. Other arguments choose one operation and one form.
#define _GNU_SOURCE  // for the headers of one_member_calls.h, which needs the names of the operations

enum operation {
    kBarrier,
    kBcast,
    kReduce,
    kAllreduce,
    kGather,
    kGatherv,
    kScatter,
    kScatterv,
    kAllgather,
    kAllgatherv,
    kAlltoall,
    kAlltoallInPlace,
    kAlltoallv,
    kAlltoallw,
    kReduceScatter,
    kReduceScatterBlock,
    kScan,
    kExscan,
    kNeighborAllgather,
    kNeighborAllgatherv,
    kNeighborAlltoall,
    kNeighborAlltoallv,
    kNeighborAlltoallw,
    kOperations
};
static const char* const kCalls[kOperations] = {"Barrier",
                                                "Bcast",
                                                "Reduce",
                                                "Allreduce",
                                                "Gather",
                                                "Gatherv",
                                                "Scatter",
                                                "Scatterv",
                                                "Allgather",
                                                "Allgatherv",
                                                "Alltoall",
                                                "Alltoall in place",
                                                "Alltoallv",
                                                "Alltoallw",
                                                "Reduce_scatter",
                                                "Reduce_scatter_block",
                                                "Scan",
                                                "Exscan",
                                                "Neighbor_allgather",
                                                "Neighbor_allgatherv",
                                                "Neighbor_alltoall",
                                                "Neighbor_alltoallv",
                                                "Neighbor_alltoallw"};

#include "one_member_calls.h"

static MPI_Comm home;  // of all ranks, a ring; returns errors

static int begin(const struct call* c, MPI_Request* request) {
    const int n = c->count;
    const MPI_Datatype t = c->type;
    switch (c->operation) {
        case kBarrier:
            return FORM(Barrier, Ibarrier, home);
        case kBcast:
            return FORM(Bcast, Ibcast, rank == 0 ? input : output, n, t, 0, home);
        case kReduce:
            return FORM(Reduce, Ireduce, input, output, n, t, MPI_SUM, 0, home);
        case kAllreduce:
            return FORM(Allreduce, Iallreduce, input, output, n, t, MPI_SUM, home);
        case kGather:
            return FORM(Gather, Igather, input, n, t, output, n, t, 0, home);
        case kGatherv:
            return FORM(Gatherv, Igatherv, input, n, t, output, c->counts, c->displacements, t, 0, home);
        case kScatter:
            return FORM(Scatter, Iscatter, input, n, t, output, n, t, 0, home);
        case kScatterv:
            return FORM(Scatterv, Iscatterv, input, c->counts, c->displacements, t, output, n, t, 0, home);
        case kAllgather:
            return FORM(Allgather, Iallgather, input, n, t, output, n, t, home);
        case kAllgatherv:
            return FORM(Allgatherv, Iallgatherv, input, n, t, output, c->counts, c->displacements, t, home);
        case kAlltoall:
            return FORM(Alltoall, Ialltoall, input, n, t, output, n, t, home);
        case kAlltoallInPlace:
            return FORM(Alltoall, Ialltoall, MPI_IN_PLACE, n, t, output, n, t, home);
        case kAlltoallv:
            return FORM(Alltoallv, Ialltoallv, input, c->counts, c->displacements, t, output, c->counts, c->displacements, t,
                        home);
        case kAlltoallw:
            return FORM(Alltoallw, Ialltoallw, input, c->counts, c->bytes, c->types, output, c->counts, c->bytes, c->types,
                        home);
        case kReduceScatter:
            return FORM(Reduce_scatter, Ireduce_scatter, input, output, c->counts, t, MPI_SUM, home);
        case kReduceScatterBlock:
            return FORM(Reduce_scatter_block, Ireduce_scatter_block, input, output, n, t, MPI_SUM, home);
        case kScan:
            return FORM(Scan, Iscan, input, output, n, t, MPI_SUM, home);
        case kExscan:
            return FORM(Exscan, Iexscan, input, output, n, t, MPI_SUM, home);
        case kNeighborAllgather:
            return FORM(Neighbor_allgather, Ineighbor_allgather, input, n, t, output, n, t, home);
        case kNeighborAllgatherv:
            return FORM(Neighbor_allgatherv, Ineighbor_allgatherv, input, n, t, output, c->counts, c->displacements, t, home);
        case kNeighborAlltoall:
            return FORM(Neighbor_alltoall, Ineighbor_alltoall, input, n, t, output, n, t, home);
        case kNeighborAlltoallv:
            return FORM(Neighbor_alltoallv, Ineighbor_alltoallv, input, c->counts, c->displacements, t, output, c->counts,
                        c->displacements, t, home);
        default:
            return FORM(Neighbor_alltoallw, Ineighbor_alltoallw, input, c->counts, c->addresses, c->types, output, c->counts,
                        c->addresses, c->types, home);
    }
}

static int is_reduction(int operation) {
    return operation == kReduce || operation == kAllreduce || (operation >= kReduceScatter && operation <= kExscan);
}

/// Element `i` of the input block number `block` of a rank.
static int element(int from, int block, int i) { return from * 1000 + block * 100 + i % 97; }

static int wanted(const struct call* c, int block, int i) {
    // A persistent MPI_IN_PLACE operation has exchanged the blocks twice.
    if (block >= size || (c->operation == kAlltoallInPlace && c->form == 2)) return kAny;
    const int last = (rank + size - 1) % size, next = (rank + 1) % size, source = block == 0 ? last : next;
    int sum = 0;
    switch (c->operation) {
        case kBcast:
            return rank == 0 || block > 0 ? kAny : element(0, 0, i);
        case kGather:
        case kGatherv:
            return rank == 0 ? element(block, 0, i) : kAny;
        case kScatter:
        case kScatterv:
            return block == 0 ? element(0, rank, i) : kAny;
        case kAllgather:
        case kAllgatherv:
            return element(block, 0, i);
        case kAlltoall:
        case kAlltoallInPlace:
        case kAlltoallv:
        case kAlltoallw:
            return element(block, rank, i);
        case kReduce:
            if (rank > 0) return kAny;
            break;
        case kExscan:
            if (rank == 0) return kAny;
            break;
        case kNeighborAllgather:
        case kNeighborAllgatherv:
            return block < 2 ? element(source, 0, i) : kAny;
        case kNeighborAlltoall:
        case kNeighborAlltoallv:
        case kNeighborAlltoallw:
            // The neighbor below sends to this rank, its upper neighbor, its second block.
            return block < 2 ? element(source, block == 0, i) : kAny;
        default:
            break;
    }
    if (!is_reduction(c->operation) || block > 0) return kAny;
    const int share = c->operation == kReduceScatter || c->operation == kReduceScatterBlock ? rank : 0;
    const int ranks = c->operation == kScan ? rank + 1 : c->operation == kExscan ? rank : size;
    for (int from = 0; from < ranks; from++) sum += element(from, share, i);
    return sum;
}

static void fill(const struct call* c) {
    for (int block = 0; block < size; block++)
        for (int i = 0; i < c->count; i++) {
            const int at = (block * c->count + i) * c->stride;
            input[at] = element(rank, block, i);
            output[at] = c->operation == kAlltoallInPlace ? input[at] : kUntouched;
        }
}

static void set_arrays(struct call* c) {
    for (int i = 0; i < size; i++) {
        c->types[i] = c->type;
        c->addresses[i] = c->bytes[i] = i * c->count * c->stride * (int)sizeof(int);
    }
}

// The elements do not fit into the stage's slots.
static void make_starving_call(void) { MPI_Scan(input, output, kLong, MPI_INT, MPI_SUM, home); }

int main(int argc, char** argv) {
    const int ring = 1;
    int dims[1];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= kMost, "run it with at most %d ranks", kMost);
    dims[0] = size;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, &ring, 0, &home));
    OK(MPI_Comm_rank(home, &rank));
    OK(MPI_Comm_set_errhandler(home, MPI_ERRORS_RETURN));
    run(argc, argv);
    OK(MPI_Comm_free(&home));
    OK(MPI_Finalize());
    return 0;
}
