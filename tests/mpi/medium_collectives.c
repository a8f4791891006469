/* Collectives on 8 KB to 1.2 MB, whose data travels in pieces: lengths around the limits between algorithms, odd lengths, every root, in
 * place and not, an operation that depends on the order of the ranks, and elements with gaps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const int kCounts[] = {2048, 4099, 16384, 16385, 32769, 65535, 65536, 131072, 300007};
enum { kMost = 300007, kTests = sizeof kCounts / sizeof kCounts[0] };

static void require(int condition, const char* what, int count, int at) {
    if (condition) return;
    fprintf(stderr, "rank %d of %d: %s of %d elements is wrong at %d\n", rank, size, what, count, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int value(int from, int at) { return from * 7919 + at % 10007; }

static void fill(int* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = value(rank, i);
}

static void test_sum(int* out, int* in, int count, int in_place) {
    fill(in_place ? in : out, count);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
        int sum = 0;
        for (int r = 0; r < size; ++r) sum += value(r, i);
        require(in[i] == sum, in_place ? "allreduce in place" : "allreduce", count, i);
        if (!in_place) require(out[i] == value(rank, i), "the input of allreduce", count, i);
    }
}

/* Composes functions a*x + b, modulo 2^32: in the order of the ranks only. */
typedef struct {
    unsigned a, b;
} Line;
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
    const Line* first = in;
    Line* second = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        Line both = {second[i].a * first[i].a, second[i].a * first[i].b + second[i].b};
        second[i] = both;
    }
}

static Line line_of(int from, int at) {
    Line line = {(unsigned)(2 * from + 3), (unsigned)value(from, at)};
    return line;
}

static void test_order(int* out, int* in, int count, int in_place) {
    Line *mine = (Line*)(in_place ? in : out), *result = (Line*)in;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    for (int i = 0; i < count; ++i) mine[i] = line_of(rank, i);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, result, count, pair, op, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
        Line all = line_of(0, i);
        for (int r = 1; r < size; ++r) {
            Line next = line_of(r, i);
            int one = 1;
            compose(&all, &next, &one, &pair);
            all = next;
        }
        require(result[i].a == all.a && result[i].b == all.b,
                in_place ? "an ordered allreduce in place" : "an ordered allreduce", count, i);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void add_every_other(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; ++i) ((int*)inout)[2 * i] += ((int*)in)[2 * i];
}

static void test_gaps(int* out, int* in, int count) {
    MPI_Datatype gapped;
    MPI_Op op;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
    MPI_Type_commit(&gapped);
    MPI_Op_create(add_every_other, 1, &op);
    fill(out, 2 * count);
    for (int i = 0; i < 2 * count; ++i) in[i] = -1;
    MPI_Allreduce(out, in, count, gapped, op, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; ++i) {
        int sum = 0;
        for (int r = 0; r < size; ++r) sum += value(r, i);
        require(in[i] == (i % 2 ? -1 : sum), "an allreduce with gaps", count, i);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&gapped);
}

static void test_bcast(int* in, int count) {
    for (int root = 0; root < size; ++root) {
        if (rank == root)
            fill(in, count);
        else
            memset(in, 0xff, (size_t)count * sizeof(int));
        MPI_Bcast(in, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i) require(in[i] == value(root, i), "bcast", count, i);
    }
}

static void test_allgather(int* out, int* in, int count, int in_place) {
    memset(in, 0xff, (size_t)size * (size_t)count * sizeof(int));
    fill(in_place ? in + rank * count : out, count);
    MPI_Allgather(in_place ? MPI_IN_PLACE : out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * count; ++i)
        require(in[i] == value(i / count, i % count), in_place ? "allgather in place" : "allgather", count, i);
}

/* Blocks that are contiguous at the sender and have gaps at the receiver, or the other way round. */
static void test_allgather_gaps(int* out, int* in, int count, int sends_gaps) {
    MPI_Datatype gapped;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
    MPI_Type_commit(&gapped);
    memset(in, 0xff, 2 * (size_t)size * (size_t)count * sizeof(int));
    fill(out, 2 * count);
    MPI_Allgather(out, count, sends_gaps ? gapped : MPI_INT, in, count, sends_gaps ? MPI_INT : gapped, MPI_COMM_WORLD);
    for (int i = 0; i < size * count; ++i) {
        int from = i / count, at = i % count;
        require(in[sends_gaps ? i : 2 * i] == value(from, sends_gaps ? 2 * at : at), "an allgather with gaps", count, i);
    }
    MPI_Type_free(&gapped);
}

static void test_alltoall(int* out, int* in, int count) {
    fill(out, size * count);
    memset(in, 0xff, (size_t)size * (size_t)count * sizeof(int));
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * count; ++i) require(in[i] == value(i / count, rank * count + i % count), "alltoall", count, i);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* out = malloc(2 * (size_t)size * kMost * sizeof(int));
    int* in = malloc(2 * (size_t)size * kMost * sizeof(int));
    for (int t = 0; t < kTests; ++t) {
        int count = kCounts[t];
        for (int in_place = 0; in_place < 2; ++in_place) {
            test_sum(out, in, count, in_place);
            test_order(out, in, count, in_place);
            test_allgather(out, in, count, in_place);
            test_allgather_gaps(out, in, count, in_place);
        }
        test_gaps(out, in, count);
        test_bcast(in, count);
        test_alltoall(out, in, count);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
