/* Meeting at a port, between two processes of one job: open, publish, look up, accept/connect, first
 * message, merge, disconnect. */
#include <stdlib.h>

#include "common/bench.h"

enum { kMaxRepetitions = 1000 };
enum Step { kOpen, kPublish, kLookup, kConnect, kFirst, kMerge, kDisconnect, kUnpublish, kClose, kSteps };
static const char* const kNames[kSteps] = {"open-port",  "publish",          "lookup",
                                           "connect",    "first-round-trip", "merge",
                                           "disconnect", "unpublish",        "close-port"};

static const char kService[] = "starling-bench-connect";

static double since(double* last) {
    double time = bench_now(), passed = time - *last;
    *last = time;
    return passed;
}

static void round_trip(int rank, MPI_Comm comm) {
    long word = 0;
    if (rank == 0) MPI_Send(&word, 1, MPI_LONG, 0, 0, comm);
    MPI_Recv(&word, 1, MPI_LONG, 0, 0, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&word, 1, MPI_LONG, 0, 0, comm);
}

/* What happens once the port is known on both sides. */
static void meet(int rank, char* port, double* times) {
    MPI_Comm other, merged;
    MPI_Barrier(MPI_COMM_WORLD);
    double last = bench_now();
    if (rank == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    }
    times[kConnect] = since(&last);
    round_trip(rank, other);
    times[kFirst] = since(&last);
    MPI_Intercomm_merge(other, rank, &merged);
    times[kMerge] = since(&last);
    MPI_Comm_free(&merged);
    MPI_Barrier(MPI_COMM_WORLD);
    last = bench_now();
    MPI_Comm_disconnect(&other);
    times[kDisconnect] = since(&last);
}

static void once(int rank, int names, double* times) {
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    double last = bench_now();
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        times[kOpen] = since(&last);
        if (names) MPI_Publish_name(kService, MPI_INFO_NULL, port);
        times[kPublish] = since(&last);
    }
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 1 && names) {
        last = bench_now();
        MPI_Lookup_name(kService, MPI_INFO_NULL, found);
        times[kLookup] = since(&last);
    }
    MPI_Bcast(&times[kLookup], 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    meet(rank, port, times);
    if (rank == 0) {
        last = bench_now();
        if (names) MPI_Unpublish_name(kService, MPI_INFO_NULL, port);
        times[kUnpublish] = since(&last);
        MPI_Close_port(port);
        times[kClose] = since(&last);
    }
}

int main(int argc, char** argv) {
    static double times[kSteps][kMaxRepetitions];
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.iterations = 20;
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "accept/connect; -o connect leaves out names", defaults);
    int rank, size, names = bench_wanted(&options, "names");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bench_require(size == 2, "two processes are needed");
    int repetitions = options.iterations < kMaxRepetitions ? (int)options.iterations : kMaxRepetitions;
    for (int i = -options.warm_up; i < repetitions; ++i) {
        double one[kSteps] = {0};
        once(rank, names, one);
        for (int step = 0; step < kSteps && i >= 0; ++step) times[step][i] = one[step] * 1e6;
    }
    if (rank == 0) {
        Report* report = bench_report("connect", "us", &options);
        for (int step = 0; step < kSteps; ++step) {
            int of_names = step == kPublish || step == kLookup || step == kUnpublish;
            if (of_names && !names) continue;
            bench_row(report, kNames[step], 1, bench_stats(times[step], repetitions));
        }
        bench_print(report, "2");
    }
    MPI_Finalize();
    return 0;
}
