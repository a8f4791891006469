/* Messages per second of all pairs together: each process of the first half sends to one of the second
 * half. */
#include <stdio.h>
#include <stdlib.h>

#include "common/bench.h"

enum { kData = 4, kAnswer };

static void windows(int sends, int peer, char* buffer, int bytes, int window, long iterations,
                    MPI_Request* requests) {
    char word = 0;
    for (long i = 0; i < iterations; ++i) {
        for (int k = 0; k < window; ++k) {
            if (sends) {
                MPI_Isend(buffer, bytes, MPI_BYTE, peer, kData, MPI_COMM_WORLD, &requests[k]);
            } else {
                MPI_Irecv(buffer, bytes, MPI_BYTE, peer, kData, MPI_COMM_WORLD, &requests[k]);
            }
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (sends) {
            MPI_Recv(&word, 1, MPI_BYTE, peer, kAnswer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(&word, 1, MPI_BYTE, peer, kAnswer, MPI_COMM_WORLD);
        }
    }
}

/* Seconds of the slowest process for one batch. */
static double batch(int sends, int peer, char* buffer, int bytes, const Options* o, long iterations,
                    MPI_Request* r) {
    MPI_Barrier(MPI_COMM_WORLD);
    double before = bench_now(), slowest;
    windows(sends, peer, buffer, bytes, o->window, iterations, r);
    double own = bench_now() - before;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static Stats measure(int sends, int peer, char* buffer, int bytes, const Options* o, double pairs,
                     MPI_Request* r) {
    double* rates = malloc((size_t)o->batches * sizeof *rates);
    long iterations = o->iterations ? o->iterations : 1;
    batch(sends, peer, buffer, bytes, o, 2, r);
    while (!o->iterations &&
           batch(sends, peer, buffer, bytes, o, iterations, r) < o->seconds / o->batches / 2) {
        iterations *= 2;
    }
    for (int i = 0; i < o->batches; ++i) {
        double seconds = batch(sends, peer, buffer, bytes, o, iterations, r);
        rates[i] = 1e-6 * (double)iterations * o->window * pairs / seconds;
    }
    Stats stats = bench_stats(rates, o->batches);
    free(rates);
    return stats;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 8;
    defaults.max_bytes = 8;
    Options options = bench_options(argc, argv, "messages per second of several pairs", defaults);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bench_require(size % 2 == 0, "an even number of processes is needed");
    int sends = rank < size / 2, peer = sends ? rank + size / 2 : rank - size / 2;
    Report* report = bench_report("message-rate", "million/s", &options);
    char* buffer = bench_buffer(options.max_bytes);
    MPI_Request* requests = malloc((size_t)options.window * sizeof *requests);
    for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
        bench_row(report, "", bytes,
                  measure(sends, peer, buffer, (int)bytes, &options, size / 2, requests));
    }
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", size);
    if (rank == 0) bench_print(report, ranks);
    free(buffer);
    free(requests);
    MPI_Finalize();
    return 0;
}
