/* Time of single broadcasts, which only a simulator can measure: its clocks agree, so all processes begin at the same time, and the time of
 * a broadcast is that until the last process has returned.
 *
 *   broadcast BYTES COUNT MILLISECONDS      broadcasts BYTES for MILLISECONDS without measuring, so that groups become ready, then COUNT
 *                                           times from rotating roots; prints the median, the least and the greatest time, and the time
 *                                           of one of COUNT broadcasts in a row, microseconds */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void starling_simulated_compute(unsigned long ns);

static int rank, size, bytes;
static char* data;

static double latest(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* Waits until all processes have the same time, and the network is quiet. The library acknowledges and repeats meanwhile. */
static double begin_together(void) {
    const double begin = latest(MPI_Wtime()) + 300e-6;
    for (int found; MPI_Wtime() < begin - 1e-6;) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        starling_simulated_compute(1000);
    }
    const double left = begin - MPI_Wtime();
    if (left > 0) starling_simulated_compute((unsigned long)(left * 1e9));
    return begin;
}

static void broadcast(int root) {
    memset(data, rank == root ? root % 100 : 255, (size_t)bytes);
    MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (data[0] != root % 100 || data[bytes - 1] != root % 100) {
        fprintf(stderr, "rank %d received wrong data\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double measure(int root) {
    const double begin = begin_together();
    broadcast(root);
    return latest(MPI_Wtime() - begin) * 1e6;
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Broadcasts from the roots that will be measured. */
static void warm_up(double seconds, int roots) {
    const double begin = MPI_Wtime();
    int more = 1;
    for (int i = 0; more; ++i) {
        broadcast(i % roots % size);
        more = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        starling_simulated_compute(20000);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int count = argc == 4 ? atoi(argv[2]) : 0;
    bytes = argc == 4 ? atoi(argv[1]) : 0;
    if (bytes < 1 || count < 1) {
        fprintf(stderr, "usage: broadcast BYTES COUNT MILLISECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    data = malloc((size_t)bytes);
    double* const times = calloc((size_t)count, sizeof *times);
    warm_up(atof(argv[3]) * 1e-3, count);
    for (int i = 0; i < count; ++i) times[i] = measure(i % size);
    const double begin = begin_together();
    for (int i = 0; i < count; ++i) broadcast(i % size);
    const double row = latest(MPI_Wtime() - begin) / count * 1e6;
    qsort(times, (size_t)count, sizeof *times, compare);
    if (rank == 0)
        printf("{\"bytes\": %d, \"us\": %.3f, \"least\": %.3f, \"most\": %.3f, \"in_a_row\": %.3f}\n", bytes, times[count / 2], times[0],
               times[count - 1], row);
    free(times);
    free(data);
    MPI_Finalize();
    return 0;
}
