/* MPI_Comm_spawn by one or several parents, for several numbers of children: times of the call, until the first message of a child, and of
 * the disconnect, in the first parent. Also the time of each of many spawns of one child, with a disconnect after each (in-a-row) and with
 * all children staying (staying). Staying children sleep, so that they do not disturb. */
#include <string.h>
#include <unistd.h>

#include "common/bench.h"

enum { kMaxRepetitions = 1000 };
static char kStay[] = "stay";

/* Runs a child, whose first process sends the number of children. */
static void child(MPI_Comm parent, int stay) {
    int rank, size, over = !stay;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) MPI_Send(&size, 1, MPI_INT, 0, 0, parent);
    while (!over) {
        MPI_Iprobe(0, 0, parent, &over, MPI_STATUS_IGNORE);
        if (!over) usleep(20000);
    }
    if (stay) MPI_Recv(&size, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
}

static void spawn(char** argv, int children, int stay, MPI_Comm* comm) {
    char* arguments[] = {kStay, NULL};
    MPI_Comm_spawn(argv[0], stay ? arguments : MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, comm,
                   MPI_ERRCODES_IGNORE);
}

static void hear(MPI_Comm comm, int rank, int children) {
    int size = children;
    if (rank == 0) MPI_Recv(&size, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    bench_require(size == children, "the number of children differs from the requested one");
}

typedef struct {
    double spawn, first, disconnect;
} Times;

static Times spawn_once(char** argv, int rank, int children) {
    MPI_Comm comm;
    Times times;
    double start = bench_now();
    spawn(argv, children, 0, &comm);
    double spawned = bench_now();
    hear(comm, rank, children);
    double heard = bench_now();
    MPI_Comm_disconnect(&comm);
    times.spawn = spawned - start;
    times.first = heard - start;
    times.disconnect = bench_now() - heard;
    return times;
}

static void measure(Report* report, const Options* options, char** argv, int rank, int children) {
    static double times[3][kMaxRepetitions];
    int repetitions = options->iterations ? (int)options->iterations : 5;
    if (repetitions > kMaxRepetitions) repetitions = kMaxRepetitions;
    for (int i = -options->warm_up; i < repetitions; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        Times one = spawn_once(argv, rank, children);
        if (i < 0) continue;
        times[0][i] = one.spawn * 1e3;
        times[1][i] = one.first * 1e3;
        times[2][i] = one.disconnect * 1e3;
    }
    bench_row(report, "spawn", children, bench_stats(times[0], repetitions));
    bench_row(report, "first-message", children, bench_stats(times[1], repetitions));
    bench_row(report, "disconnect", children, bench_stats(times[2], repetitions));
}

static void measure_rate(Report* report, char** argv, int rank, int spawns) {
    double before = bench_now();
    for (int i = 0; i < spawns; ++i) spawn_once(argv, rank, 1);
    double milliseconds = (bench_now() - before) / spawns * 1e3;
    bench_row(report, "in-a-row", spawns, bench_stats(&milliseconds, 1));
}

static void measure_rate_staying(Report* report, char** argv, int rank, int spawns) {
    MPI_Comm comms[kMaxRepetitions];
    double before = bench_now();
    for (int i = 0; i < spawns; ++i) {
        spawn(argv, 1, 1, &comms[i]);
        hear(comms[i], rank, 1);
    }
    double milliseconds = (bench_now() - before) / spawns * 1e3;
    for (int i = 0; i < spawns; ++i) {
        if (rank == 0) MPI_Send(&i, 1, MPI_INT, 0, 0, comms[i]);
        MPI_Comm_disconnect(&comms[i]);
    }
    bench_row(report, "staying", spawns, bench_stats(&milliseconds, 1));
}

static void parent(int argc, char** argv) {
    Options defaults = bench_defaults();
    defaults.warm_up = 1;
    defaults.window = 50;
    defaults.counts = "1,2,4,8,16,32";
    Options options = bench_options(argc, argv,
                                    "spawn; -k children, -i spawns of each, -w spawns in a row, "
                                    "-o spawn,rate,staying",
                                    defaults);
    int rank, size, spawns = options.window < kMaxRepetitions ? options.window : kMaxRepetitions;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Report* report = bench_report("spawn", "ms", &options);
    if (bench_wanted(&options, "spawn")) {
        for (long n = bench_next_of(options.counts, 0); n > 0; n = bench_next_of(options.counts, n)) {
            measure(report, &options, argv, rank, (int)n);
        }
    }
    if (bench_wanted(&options, "rate")) measure_rate(report, argv, rank, spawns);
    if (bench_wanted(&options, "staying")) measure_rate_staying(report, argv, rank, spawns);
    bench_print_world(report);
}

int main(int argc, char** argv) {
    /* With --bare, ends without MPI, so that bench/limits can measure the bare start of this program. */
    if (argc > 1 && strcmp(argv[1], "--bare") == 0) return write(1, "x", 1) == 1 ? 0 : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm up;
    MPI_Comm_get_parent(&up);
    if (up != MPI_COMM_NULL) {
        child(up, argc > 1 && strcmp(argv[1], kStay) == 0);
    } else {
        parent(argc, argv);
    }
    MPI_Finalize();
    return 0;
}
