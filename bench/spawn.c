/* MPI_Comm_spawn: time in the parent around the call, until the first message of a child and in the
 * disconnect, for several numbers of children; and how many spawns of one child, each with a disconnect,
 * fit into a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench.h"

enum { kMaxRepetitions = 1000 };

static void child(MPI_Comm parent) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

typedef struct {
    double spawn, first, disconnect;
} Times;

static Times spawn_once(char** argv, int children) {
    MPI_Comm comm;
    int word;
    Times times;
    double start = bench_now();
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm,
                   MPI_ERRCODES_IGNORE);
    double spawned = bench_now();
    MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    double heard = bench_now();
    MPI_Comm_disconnect(&comm);
    times.spawn = spawned - start;
    times.first = heard - start;
    times.disconnect = bench_now() - heard;
    return times;
}

static void measure(Report* report, const Options* options, char** argv, int children) {
    static double spawn[kMaxRepetitions], first[kMaxRepetitions], disconnect[kMaxRepetitions];
    int repetitions = options->iterations ? (int)options->iterations : 5;
    if (repetitions > kMaxRepetitions) repetitions = kMaxRepetitions;
    for (int i = 0; i < options->warm_up; ++i) spawn_once(argv, children);
    for (int i = 0; i < repetitions; ++i) {
        Times times = spawn_once(argv, children);
        spawn[i] = times.spawn * 1e3;
        first[i] = times.first * 1e3;
        disconnect[i] = times.disconnect * 1e3;
    }
    bench_row(report, "spawn", children, bench_stats(spawn, repetitions));
    bench_row(report, "first-message", children, bench_stats(first, repetitions));
    bench_row(report, "disconnect", children, bench_stats(disconnect, repetitions));
}

static void measure_rate(Report* report, char** argv, int spawns) {
    double before = bench_now();
    for (int i = 0; i < spawns; ++i) spawn_once(argv, 1);
    double milliseconds = (bench_now() - before) / spawns * 1e3;
    bench_row(report, "in-a-row", spawns, bench_stats(&milliseconds, 1));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent);
    } else {
        Options defaults = bench_defaults();
        defaults.warm_up = 1;
        Options options =
            bench_options(argc, argv, "spawn; -k children, -i spawns of each, -o spawn,rate", defaults);
        Report* report = bench_report("spawn", "ms", &options);
        char* counts = strdup(options.counts ? options.counts : "1,2,4,8,16,32");
        if (bench_wanted(&options, "spawn")) {
            for (char* count = strtok(counts, ","); count; count = strtok(NULL, ",")) {
                measure(report, &options, argv, atoi(count));
            }
        }
        if (bench_wanted(&options, "rate")) measure_rate(report, argv, 50);
        bench_print(report, "1");
        free(counts);
    }
    MPI_Finalize();
    return 0;
}
