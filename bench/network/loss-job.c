/* Repeats one collective operation and times each call, to measure the cost of a lost frame. Plain MPI; rank 0 prints one line of JSON. It
 * has the total time in seconds, and of the single calls in rank 0 the median, 99 %, 99.9 % and the longest in milliseconds.
 *
 *   loss-job [allreduce|allgather [BYTES [COUNT]]]     BYTES per process and operation */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWarmUp = 50 };

static int rank, size;

static int compare(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double part(const double* sorted, long count, double share) {
    long at = (long)(share * (double)count);
    return 1e3 * sorted[at < count ? at : count - 1];
}

static void require(int condition, const char* what, long round) {
    if (condition) return;
    fprintf(stderr, "loss-job: rank %d: %s in round %ld is wrong\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each process contributes its rank + round, so every process can compute the required result. */
static void allreduce(long* out, long* in, int items, long round) {
    for (int i = 0; i < items; ++i) out[i] = round + i;
    MPI_Allreduce(out, in, items, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    require(in[0] == round * size && in[items - 1] == (round + items - 1) * size, "a sum", round);
}

static void allgather(long* out, long* in, int items, long round) {
    for (int i = 0; i < items; ++i) out[i] = round + rank;
    MPI_Allgather(out, items, MPI_LONG, in, items, MPI_LONG, MPI_COMM_WORLD);
    for (long r = 0; r < size; ++r)
        require(in[r * items] == round + r && in[(r + 1) * items - 1] == round + r, "the gathered data", round);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* name = argc > 1 ? argv[1] : "allreduce";
    int items = argc > 2 ? atoi(argv[2]) / (int)sizeof(long) : 1;
    long count = argc > 3 ? atol(argv[3]) : 3000, warm_up = count / 10 < kWarmUp ? count / 10 : kWarmUp;
    int gathers = strcmp(name, "allgather") == 0;
    if (items < 1 || count < 1 || (!gathers && strcmp(name, "allreduce") != 0)) {
        fprintf(stderr, "loss-job [allreduce|allgather [BYTES [COUNT]]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long* out = malloc((size_t)items * sizeof *out);
    long* in = malloc((size_t)items * (size_t)(gathers ? size : 1) * sizeof *in);
    double* times = malloc((size_t)count * sizeof *times);
    double start = 0;
    for (long round = -warm_up; round < count; ++round) {
        if (round == 0) start = MPI_Wtime();
        double begin = MPI_Wtime();
        (gathers ? allgather : allreduce)(out, in, items, round);
        if (round >= 0) times[round] = MPI_Wtime() - begin;
    }
    double whole = MPI_Wtime() - start;
    qsort(times, (size_t)count, sizeof *times, compare);
    if (rank == 0)
        printf(
            "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"count\": %ld, \"seconds\": %.6f, \"median_ms\": %.4f, "
            "\"p99_ms\": %.4f, \"p999_ms\": %.4f, \"longest_ms\": %.4f}\n",
            name, size, (size_t)items * sizeof *out, count, whole, part(times, count, 0.5), part(times, count, 0.99),
            part(times, count, 0.999), times[count - 1] * 1e3);
    free(out);
    free(in);
    free(times);
    MPI_Finalize();
    return 0;
}
