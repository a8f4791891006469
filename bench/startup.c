/* How long MPI_Init takes and how soon the first message arrives. The time of the whole `mpiexec -n N
 * startup` is measured from outside. */
#include <stdio.h>
#include <stdlib.h>

#include "common/bench.h"

int main(int argc, char** argv) {
    double started = bench_now();
    MPI_Init(&argc, &argv);
    double after_init = bench_now();
    Options options =
        bench_options(argc, argv, "time in MPI_Init and to the first message", bench_defaults());
    int rank, size, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double before = bench_now();
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &word, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double own[2] = {(after_init - started) * 1e3, (bench_now() - before) * 1e3};
    bench_require(word == (rank + size - 1) % size, "the first message is wrong");
    double* all = malloc(2 * (size_t)size * sizeof *all);
    double* one = malloc((size_t)size * sizeof *one);
    MPI_Gather(own, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        Report* report = bench_report("startup", "ms", &options);
        const char* const names[2] = {"init", "first-message"};
        for (int k = 0; k < 2; ++k) {
            for (int i = 0; i < size; ++i) one[i] = all[2 * i + k];
            bench_row(report, names[k], size, bench_stats(one, size));
        }
        char ranks[16];
        snprintf(ranks, sizeof ranks, "%d", size);
        bench_print(report, ranks);
    }
    free(all);
    free(one);
    MPI_Finalize();
    return 0;
}
