/* Gathers and scatters of blocks around the lengths at which the shared-memory stage changes its way: every root, in place and not, blocks
 * with gaps, several at once, between groups, and many in a row without a wait. With the argument "ahead", three or four ranks on one host
 * must not wait for each other's reading either. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const int kCounts[] = {511, 1024, 1025, 2048, 4097, 9001, 16384, 16385};
enum { kMost = 16385, kTests = sizeof kCounts / sizeof kCounts[0], kTag = 5 };

static void require(int condition, const char* what, int count, int at) {
    if (condition) return;
    fprintf(stderr, "rank %d of %d: %s of %d elements is wrong at %d\n", rank, size, what, count, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int value(int from, int at, int turn) { return from * 1000003 + at + turn * 7919; }

static void fill(int* to, int count, int from, int turn) {
    for (int i = 0; i < count; ++i) to[i] = value(from, i, turn);
}

static void test_gather(int* out, int* in, int count, int root, int in_place) {
    const int places = in_place && rank == root;
    memset(in, 0xff, (size_t)size * (size_t)count * sizeof(int));
    fill(places ? in + rank * count : out, count, rank, root);
    MPI_Gather(places ? MPI_IN_PLACE : out, count, MPI_INT, in, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < size * count && rank == root; ++i)
        require(in[i] == value(i / count, i % count, root), in_place ? "gather in place" : "gather", count, i);
}

static void test_scatter(int* out, int* in, int count, int root, int in_place) {
    const int places = in_place && rank == root;
    fill(out, size * count, root, 0);
    memset(in, 0xff, (size_t)count * sizeof(int));
    MPI_Scatter(out, count, MPI_INT, places ? MPI_IN_PLACE : in, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count && !places; ++i)
        require(in[i] == value(root, rank * count + i, 0), in_place ? "scatter in place" : "scatter", count, i);
}

/* Blocks with gaps at the root, contiguous elsewhere. */
static void test_gaps(int* out, int* in, int count, int root) {
    MPI_Datatype gapped;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
    MPI_Type_commit(&gapped);
    fill(out, count, rank, 3);
    memset(in, 0xff, 2 * (size_t)size * (size_t)count * sizeof(int));
    MPI_Gather(out, count, MPI_INT, in, count, gapped, root, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * size * count && rank == root; ++i)
        require(in[i] == (i % 2 ? -1 : value(i / 2 / count, i / 2 % count, 3)), "gather with gaps", count, i);
    memset(out, 0xff, (size_t)count * sizeof(int));
    MPI_Scatter(in, count, gapped, out, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) require(out[i] == value(rank, i, 3), "scatter with gaps", count, i);
    MPI_Type_free(&gapped);
}

/* Starts a gather and a scatter at once. */
static void test_at_once(int* out, int* in, int count, int root) {
    MPI_Request both[2];
    int* const blocks = out + count;
    fill(out, count, rank, 1);
    fill(blocks, size * count, root, 2);
    MPI_Igather(out, count, MPI_INT, in, count, MPI_INT, root, MPI_COMM_WORLD, &both[0]);
    MPI_Iscatter(blocks, count, MPI_INT, in + size * count, count, MPI_INT, root, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size * count && rank == root; ++i)
        require(in[i] == value(i / count, i % count, 1), "igather", count, i);
    for (int i = 0; i < count; ++i) require(in[size * count + i] == value(root, rank * count + i, 2), "iscatter", count, i);
}

/* Scatters from rank 0 to the upper group, and gathers there from the lower one. The other members of a root's group do not know the size. */
static void test_between_groups(int* out, int* in, int count) {
    const int low = (size + 1) / 2, upper = rank >= low, theirs = upper ? low : size - low;
    MPI_Comm own, both;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, upper ? 0 : low, kTag, &both);
    for (int turn = 0; turn < 3; ++turn) {
        const int root = rank == 0 || rank == low ? MPI_ROOT : MPI_PROC_NULL;
        fill(out, size * count, rank, turn);
        MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, upper ? 0 : root, both);
        for (int i = 0; i < count && upper; ++i)
            require(in[i] == value(0, (rank - low) * count + i, turn), "scatter between groups", count, i);
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, upper ? root : 0, both);
        for (int i = 0; i < theirs * count && upper && root == MPI_ROOT; ++i)
            require(in[i] == value(i / count, i % count, turn), "gather between groups", count, i);
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&own);
}

/* Many operations with one root, whose writers run ahead until the memory for their blocks is used up. */
static void test_in_a_row(int* out, int* in, int count) {
    for (int turn = 0; turn < 50; ++turn) {
        fill(out, count, rank, turn);
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < size * count && rank == 0; ++i)
            require(in[i] == value(i / count, i % count, turn), "gather in a row", count, i);
        fill(out, rank == 0 ? size * count : 0, 0, turn);
        MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i) require(in[i] == value(0, rank * count + i, turn), "scatter in a row", count, i);
    }
}

/* A writer returns before its reader enters: each reader first waits for a message that the writer sends afterwards. */
static void test_run_ahead(int* out, int* in, int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < size && rank == 0; ++i) MPI_Recv(NULL, 0, MPI_INT, i, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) MPI_Send(NULL, 0, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    if (rank != 0) MPI_Recv(NULL, 0, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 1; i < size && rank == 0; ++i) MPI_Send(NULL, 0, MPI_INT, i, kTag, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* out = malloc(2 * (size_t)(size + 1) * kMost * sizeof(int));
    int* in = malloc(2 * (size_t)(size + 1) * kMost * sizeof(int));
    for (int t = 0; t < kTests; ++t) {
        for (int root = 0; root < size; ++root) {
            for (int in_place = 0; in_place < 2; ++in_place) {
                test_gather(out, in, kCounts[t], root, in_place);
                test_scatter(out, in, kCounts[t], root, in_place);
            }
            test_gaps(out, in, kCounts[t], root);
            test_at_once(out, in, kCounts[t], root);
        }
        test_between_groups(out, in, kCounts[t]);
        test_in_a_row(out, in, kCounts[t]);
    }
    if (argc > 1 && strcmp(argv[1], "ahead") == 0) test_run_ahead(out, in, 16384);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
