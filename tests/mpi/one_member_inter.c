// One member of a collective operation over an inter-communicator is refused its n-th allocation, for each n, operation, form (blocking,
// non-blocking, persistent) and member. The library's reserve must serve it: the operation completes on all members of both groups, with the
// right data. With the argument `starve`, rank 0 gets no memory any more: its process must end, because the others wait for it.
#define _GNU_SOURCE
#include "check.h"
#include "refuse.h"

enum { kMost = 3, kForms = 3, kLong = 6000 };  // ranks, forms of each operation, elements of a long block
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
static const char* const kFormNames[kForms] = {"blocking", "non-blocking", "persistent"};

static MPI_Comm both;  // rank 0 in one group, all others in the other; returns errors
static int rank, size, place, local_size, remote_size, remote_first;
static MPI_Datatype spaced;  // one integer and a gap of the same size
// Blocks of `count` elements; those of type `spaced` take two integers.
static int input[kMost * kLong * 2], output[kMost * kLong * 2];

/// The arguments of one call. Persistent and non-blocking operations read its arrays until they complete.
struct call {
    int operation, form, count, stride;  // stride: integers from one element to the next
    MPI_Datatype type;
    int counts[kMost], displacements[kMost], shares[kMost];
};

/// The root is the first rank of the group of ranks 1, 2...
static int root(void) { return rank == 0 ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL; }

/// The elements of a reduce-scatter's vector, which both groups divide among their members without rest.
static int vector_of(const struct call* c) { return c->count * local_size * remote_size; }

// Calls the form of an operation that `call` and `request` name.
#define FORM(blocking, starting, ...)                      \
    (c->form == 0   ? MPI_##blocking(__VA_ARGS__)          \
     : c->form == 1 ? MPI_##starting(__VA_ARGS__, request) \
                    : MPI_##blocking##_init(__VA_ARGS__, MPI_INFO_NULL, request))

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

/// Makes the call and waits for it. Starts a persistent operation twice. Returns the first error.
static int finish(const struct call* c) {
    MPI_Request request = MPI_REQUEST_NULL;
    int error = begin(c, &request);
    for (int starts = c->form == 2 ? 2 : c->form; starts > 0 && !error; starts--) {
        if (c->form == 2) error = MPI_Start(&request);
        if (!error) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    return error;
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

/// Returns what element `i` of output block `block` must be on this rank; -1: the call leaves it unchanged.
static int wanted(const struct call* c, int block, int i) {
    const int n = c->count;
    switch (c->operation) {
        case kBcast:
            return rank == 0 && block == 0 ? element(1, i) : -1;
        case kReduce:
            return rank == 1 && block == 0 ? sum_of_remote(i) : -1;
        case kAllreduce:
            return block == 0 ? sum_of_remote(i) : -1;
        case kGather:
            return rank == 1 && block < remote_size ? element(remote_first + block, i) : -1;
        case kScatter:
            return rank == 0 && block == 0 ? element(1, i) : -1;
        case kAllgather:
        case kAllgatherv:
            return block < remote_size ? element(remote_first + block, i) : -1;
        case kAlltoall:
        case kAlltoallv:
            return block < remote_size ? element(remote_first + block, place * n + i) : -1;
        case kReduceScatter:
        case kReduceScatterBlock:
            return block * n + i < c->shares[0] ? sum_of_remote(place * c->shares[0] + block * n + i) : -1;
        default:
            return -1;
    }
}

/// Makes the call once, and refuses the victim its allocation number `which`. Returns false if the victim made fewer allocations.
static int try_once(const struct call* c, int which, int victim) {
    for (int i = 0; i < kMost * c->count; i++) input[i * c->stride] = element(rank, i), output[i * c->stride] = -5;
    if (rank == victim) refused_kind = kMalloc, refused_in = which;
    const int error = finish(c);
    int was_refused = rank == victim && refused_in == 0;
    refused_in = 0;
    CHECK(!error, "%s, %s, %d elements, allocation %d of rank %d refused: error class %d", kCalls[c->operation],
          kFormNames[c->form], c->count, which, victim, class_of(error));
    for (int block = 0; block < kMost; block++)
        for (int i = 0; i < c->count; i++) {
            const int right = wanted(c, block, i), is = output[(block * c->count + i) * c->stride];
            CHECK(is == (right == -1 ? -5 : right),
                  "%s, %s, %d elements, allocation %d of rank %d refused: element %d of block %d is %d, wanted %d",
                  kCalls[c->operation], kFormNames[c->form], c->count, which, victim, i, block, is, right);
        }
    OK(MPI_Bcast(&was_refused, 1, MPI_INT, victim, MPI_COMM_WORLD));
    return was_refused;
}

static void try_all(int operation, int form, int count, MPI_Datatype type) {
    struct call c = {.operation = operation, .form = form, .count = count, .stride = type == MPI_INT ? 1 : 2, .type = type};
    if (is_reduction(operation) && type != MPI_INT) return;  // MPI_SUM is not defined for derived types
    for (int i = 0; i < size; i++)
        c.counts[i] = count, c.displacements[i] = i * count, c.shares[i] = vector_of(&c) / local_size;
    // Persistent operations take long to create, so each has one victim.
    const int first = form == 2 ? operation % size : 0, last = form == 2 ? first : size - 1;
    for (int victim = first; victim <= last; victim++)
        for (int which = 1; try_once(&c, which, victim); which++) CHECK(which < 1000, "%s", kCalls[operation]);
}

static void try_operation(int operation, int form) {
    for (int count = 3; count <= kLong; count += kLong - 3) {
        try_all(operation, form, count, MPI_INT);
        if (operation != kBarrier) try_all(operation, form, count, spaced);
    }
}

/// A process without any memory must end, and its job with it.
static void starve(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    refused_kind = kMalloc, refused_in = rank == 0, refused_for_ever = 1;
    MPI_Allreduce(input, output, kLong, MPI_INT, MPI_SUM, both);
    refused_in = 0;
#endif
}

int main(int argc, char** argv) {
    MPI_Datatype pair;
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
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pair));
    OK(MPI_Type_contiguous(1, pair, &spaced));
    OK(MPI_Type_commit(&spaced));
    if (argc == 2)
        starve();
    else
        for (int operation = 0; kCanRefuse && operation < kOperations; operation++)
            for (int form = 0; form < kForms; form++)
                if (argc < 3 || (operation == atoi(argv[1]) && form == atoi(argv[2]))) try_operation(operation, form);
    OK(MPI_Type_free(&spaced));
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&group));
    OK(MPI_Finalize());
    return 0;
}
