/* Duration of MPI_Init and time to the first message, over the processes. The time of the whole `mpiexec -n N startup` is measured from
 * outside. */
#include <string.h>
#include <unistd.h>

#include "common/bench.h"

int main(int argc, char** argv) {
    /* With --bare, ends without MPI, so that bench/limits can measure the bare start of this program. */
    if (argc > 1 && strcmp(argv[1], "--bare") == 0) return write(1, "x", 1) == 1 ? 0 : 1;
    double started = bench_now();
    MPI_Init(&argc, &argv);
    double after_init = bench_now();
    Options options = bench_options(argc, argv, "time in MPI_Init and to the first message", bench_defaults());
    int rank, size, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double before = bench_now();
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &word, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    double heard = bench_now();
    bench_require(word == (rank + size - 1) % size, "the first message is wrong");
    Report* report = bench_report("startup", "ms", &options);
    Stats stats = bench_over_processes(MPI_COMM_WORLD, (after_init - started) * 1e3);
    bench_row(report, "init", size, stats);
    stats = bench_over_processes(MPI_COMM_WORLD, (heard - before) * 1e3);
    bench_row(report, "first-message", size, stats);
    bench_print_world(report);
    MPI_Finalize();
    return 0;
}
