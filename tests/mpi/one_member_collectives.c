// One member of a collective operation is refused its n-th allocation, for each n, operation, form (blocking, non-blocking, persistent) and
// member. The library's reserve must serve it: the operation completes on all members, with the right data. With the argument `starve`, rank
// 0 gets no memory any more: its process must end, because the others wait for it. Other arguments choose one operation and one form.
#define _GNU_SOURCE
#include "check.h"
#include "refuse.h"

enum { kMost = 3, kForms = 3, kElements = 6000 };  // ranks, forms of each operation, elements of a long block
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
static const char* const kFormNames[kForms] = {"blocking", "non-blocking", "persistent"};

static MPI_Comm home;        // of all ranks, a ring; returns errors
static MPI_Datatype spaced;  // one integer and a gap of the same size
static int rank, size;
// One block per rank; the elements of type `spaced` take two integers.
static int input[kMost * kElements * 2], output[kMost * kElements * 2];

/// The arguments of one call. Persistent and non-blocking operations read its arrays until they complete.
struct call {
    int operation, form, count, stride;  // stride: integers from one element to the next
    MPI_Datatype type;
    int counts[kMost], displacements[kMost], bytes[kMost];
    MPI_Aint addresses[kMost];
    MPI_Datatype types[kMost];
};

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
    return operation == kReduce || operation == kAllreduce || (operation >= kReduceScatter && operation <= kExscan);
}

/// Element `i` of the input block number `block` of a rank.
static int element(int from, int block, int i) { return from * 1000 + block * 100 + i % 97; }

/// Returns what element `i` of output block `block` must be on this rank; -1: the call leaves it undefined or unchanged.
static int wanted(const struct call* c, int block, int i) {
    const int last = (rank + size - 1) % size, next = (rank + 1) % size, source = block == 0 ? last : next;
    int sum = 0;
    switch (c->operation) {
        case kBcast:
            return rank == 0 || block > 0 ? -1 : element(0, 0, i);
        case kGather:
        case kGatherv:
            return rank == 0 ? element(block, 0, i) : -1;
        case kScatter:
        case kScatterv:
            return block == 0 ? element(0, rank, i) : -1;
        case kAllgather:
        case kAllgatherv:
            return element(block, 0, i);
        case kAlltoall:
        case kAlltoallInPlace:
        case kAlltoallv:
        case kAlltoallw:
            return element(block, rank, i);
        case kReduce:
            if (rank > 0) return -1;
            break;
        case kExscan:
            if (rank == 0) return -1;
            break;
        case kNeighborAllgather:
        case kNeighborAllgatherv:
            return block < 2 ? element(source, 0, i) : -1;
        case kNeighborAlltoall:
        case kNeighborAlltoallv:
        case kNeighborAlltoallw:
            // The neighbor below sends to this rank, its upper neighbor, its second block.
            return block < 2 ? element(source, block == 0, i) : -1;
        default:
            break;
    }
    if (!is_reduction(c->operation) || block > 0) return -1;
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
            output[at] = c->operation == kAlltoallInPlace ? input[at] : -5;
        }
}

/// Makes the call once, and refuses the victim its allocation number `which`. Returns false if the victim made fewer allocations.
static int try_once(const struct call* c, int which, int victim) {
    fill(c);
    if (rank == victim) refused_kind = kMalloc, refused_in = which;
    const int error = finish(c);
    int was_refused = rank == victim && refused_in == 0;
    refused_in = 0;
    CHECK(!error, "%s, %s, %d elements, allocation %d of rank %d refused: error class %d", kCalls[c->operation],
          kFormNames[c->form], c->count, which, victim, class_of(error));
    // A persistent MPI_IN_PLACE operation has exchanged the blocks twice.
    if (!(c->operation == kAlltoallInPlace && c->form == 2))
        for (int block = 0; block < size; block++)
            for (int i = 0; i < c->count; i++) {
                const int right = wanted(c, block, i), is = output[(block * c->count + i) * c->stride];
                CHECK(right == -1 || is == right,
                      "%s, %s, %d elements, allocation %d of rank %d refused: element %d of block %d is %d, wanted %d",
                      kCalls[c->operation], kFormNames[c->form], c->count, which, victim, i, block, is, right);
            }
    OK(MPI_Bcast(&was_refused, 1, MPI_INT, victim, MPI_COMM_WORLD));
    return was_refused;
}

static void try_all(int operation, int form, int count, MPI_Datatype type) {
    struct call c = {.operation = operation, .form = form, .count = count, .stride = type == MPI_INT ? 1 : 2, .type = type};
    if (is_reduction(operation) && type != MPI_INT) return;  // MPI_SUM is not defined for derived types
    for (int i = 0; i < size; i++) {
        c.counts[i] = count, c.displacements[i] = i * count, c.types[i] = type;
        c.addresses[i] = c.bytes[i] = i * count * c.stride * (int)sizeof(int);
    }
    // Persistent operations take long to create, so each has one victim.
    const int first = form == 2 ? operation % size : 0, last = form == 2 ? first : size - 1;
    for (int victim = first; victim <= last; victim++)
        for (int which = 1; try_once(&c, which, victim); which++) CHECK(which < 1000, "%s", kCalls[operation]);
}

static void try_sizes(int operation, int form) {
    const int counts[] = {3, kElements};
    for (int i = 0; i < 2; i++) {
        try_all(operation, form, counts[i], MPI_INT);
        if (operation != kBarrier) try_all(operation, form, counts[i], spaced);
    }
}

/// A process without any memory must end, and its job with it. The elements do not fit into the stage's slots.
static void starve(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    refused_kind = kMalloc, refused_in = rank == 0, refused_for_ever = 1;
    MPI_Scan(input, output, kElements, MPI_INT, MPI_SUM, home);
    refused_in = 0;
#endif
}

int main(int argc, char** argv) {
    const int ring = 1;
    int dims[1];
    MPI_Datatype pair;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= kMost, "run it with at most %d ranks", kMost);
    dims[0] = size;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, &ring, 0, &home));
    OK(MPI_Comm_rank(home, &rank));
    OK(MPI_Comm_set_errhandler(home, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pair));
    OK(MPI_Type_contiguous(1, pair, &spaced));
    OK(MPI_Type_commit(&spaced));
    if (argc == 2)
        starve();
    else
        for (int operation = 0; kCanRefuse && operation < kOperations; operation++)
            for (int form = 0; form < kForms; form++)
                if (argc < 3 || (operation == atoi(argv[1]) && form == atoi(argv[2]))) try_sizes(operation, form);
    OK(MPI_Type_free(&spaced));
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&home));
    OK(MPI_Finalize());
    return 0;
}
