// One member of a collective operation over an inter-communicator is refused its n-th allocation, for each n, operation, form (blocking,
// non-blocking, persistent) and member. The library's reserve must serve it: the operation completes on all members of both groups, with the
// right data. With the argument `starve`, rank 0 gets no memory any more: its process must end, because the others wait for it.
#define _GNU_SOURCE  // for the headers of one_member_calls.h, which needs the names of the operations

enum operation {
    kBarrier,
    kBcast,
    kReduce,
    kAllreduce,
    kGather,
    kScatter,
    kAllgather,
    kAllgatherv,
    kAlltoall,
    kAlltoallv,
    kReduceScatter,
    kReduceScatterBlock,
    kOperations
};
static const char* const kCalls[kOperations] = {"Barrier",  "Bcast",     "Reduce",         "Allreduce",
                                                "Gather",   "Scatter",   "Allgather",      "Allgatherv",
                                                "Alltoall", "Alltoallv", "Reduce_scatter", "Reduce_scatter_block"};

#include "one_member_calls.h"

static MPI_Comm both;  // rank 0 in one group, all others in the other; returns errors
static int place, local_size, remote_size, remote_first;

/// The root is the first rank of the group of ranks 1, 2...
static int root(void) { return rank == 0 ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL; }

/// The elements of a reduce-scatter's vector, which both groups divide among their members without rest.
static int vector_of(const struct call* c) { return c->count * local_size * remote_size; }

static int begin(const struct call* c, MPI_Request* request) {
    const int n = c->count;
    const MPI_Datatype t = c->type;
    switch (c->operation) {
        case kBarrier:
            return FORM(Barrier, Ibarrier, both);
        case kBcast:
            return FORM(Bcast, Ibcast, rank == 0 ? output : input, n, t, root(), both);
        case kReduce:
            return FORM(Reduce, Ireduce, input, output, n, t, MPI_SUM, root(), both);
        case kAllreduce:
            return FORM(Allreduce, Iallreduce, input, output, n, t, MPI_SUM, both);
        case kGather:
            return FORM(Gather, Igather, input, n, t, output, n, t, root(), both);
        case kScatter:
            return FORM(Scatter, Iscatter, input, n, t, output, n, t, root(), both);
        case kAllgather:
            return FORM(Allgather, Iallgather, input, n, t, output, n, t, both);
        case kAllgatherv:
            return FORM(Allgatherv, Iallgatherv, input, n, t, output, c->counts, c->displacements, t, both);
        case kAlltoall:
            return FORM(Alltoall, Ialltoall, input, n, t, output, n, t, both);
        case kAlltoallv:
            return FORM(Alltoallv, Ialltoallv, input, c->counts, c->displacements, t, output, c->counts, c->displacements, t,
                        both);
        case kReduceScatter:
            return FORM(Reduce_scatter, Ireduce_scatter, input, output, c->shares, t, MPI_SUM, both);
        default:
            return FORM(Reduce_scatter_block, Ireduce_scatter_block, input, output, c->shares[0], t, MPI_SUM, both);
    }
}

static int is_reduction(int operation) {
    return operation == kReduce || operation == kAllreduce || operation == kReduceScatter || operation == kReduceScatterBlock;
}

/// Element `i` of the input of a rank.
static int element(int from, int i) { return from * 1000 + i % 97; }

/// Returns the sum of element `i` over the other group's inputs.
static int sum_of_remote(int i) {
    int sum = 0;
    for (int k = 0; k < remote_size; k++) sum += element(remote_first + k, i);
    return sum;
}

static int wanted(const struct call* c, int block, int i) {
    const int n = c->count;
    switch (c->operation) {
        case kBcast:
            return rank == 0 && block == 0 ? element(1, i) : kUntouched;
        case kReduce:
            return rank == 1 && block == 0 ? sum_of_remote(i) : kUntouched;
        case kAllreduce:
            return block == 0 ? sum_of_remote(i) : kUntouched;
        case kGather:
            return rank == 1 && block < remote_size ? element(remote_first + block, i) : kUntouched;
        case kScatter:
            return rank == 0 && block == 0 ? element(1, i) : kUntouched;
        case kAllgather:
        case kAllgatherv:
            return block < remote_size ? element(remote_first + block, i) : kUntouched;
        case kAlltoall:
        case kAlltoallv:
            return block < remote_size ? element(remote_first + block, place * n + i) : kUntouched;
        case kReduceScatter:
        case kReduceScatterBlock:
            return block * n + i < c->shares[0] ? sum_of_remote(place * c->shares[0] + block * n + i) : kUntouched;
        default:
            return kUntouched;
    }
}

static void fill(const struct call* c) {
    for (int i = 0; i < kMost * c->count; i++) input[i * c->stride] = element(rank, i), output[i * c->stride] = kUntouched;
}

static void set_arrays(struct call* c) {
    for (int i = 0; i < size; i++) c->shares[i] = vector_of(c) / local_size;
}

static void make_starving_call(void) { MPI_Allreduce(input, output, kLong, MPI_INT, MPI_SUM, both); }

int main(int argc, char** argv) {
    MPI_Comm group;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(size >= 2 && size <= kMost, "run it with 2 to %d ranks", kMost);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &group));
    OK(MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank == 0, 0, &both));
    OK(MPI_Comm_rank(both, &place));
    OK(MPI_Comm_size(both, &local_size));
    OK(MPI_Comm_remote_size(both, &remote_size));
    remote_first = rank == 0;
    OK(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
    run(argc, argv);
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&group));
    OK(MPI_Finalize());
    return 0;
}
