
#include "bench.h"

enum { kControlTag = 77 };
enum { kMaxBatches = 1000 };

Pair bench_pair(const Options* options, char** argv) {
    Pair pair = {MPI_COMM_WORLD, 1, 0, 0};
    MPI_Comm parent;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        pair.comm = parent;
        pair.peer = 0;
        pair.role = 1;
        pair.spawned = 1;
    } else if (options->children > 0) {
        bench_require(size == 1, "with --spawn start one process");
        MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &pair.comm, MPI_ERRCODES_IGNORE);
        pair.peer = 0;
        pair.spawned = 1;
    } else {
        bench_require(size >= 2, "there must be at least two processes");
        pair.peer = 1 - rank;
        pair.role = rank < 2 ? rank : -1;
    }
    return pair;
}

void bench_pair_end(Pair* pair) {
    if (pair->spawned) MPI_Comm_disconnect(&pair->comm);
}

/* Returns the seconds of a batch; *aside is the part of them that is not measured. */
static double lead_batch(const Pair* pair, PairRound round, void* context, long iterations, double* aside) {
    MPI_Send(&iterations, 1, MPI_LONG, pair->peer, kControlTag, pair->comm);
    double before = bench_now();
    *aside = round(pair, iterations, context);
    return bench_now() - before;
}

/* Returns the number of iterations that take the wanted time, unmeasured work included. A disturbance may make a batch longer, so the time
 * must be reached three times in a row. */
static long calibrate(const Pair* pair, PairRound round, void* context, double wanted) {
    double aside;
    long iterations = 1;
    for (int reached = 0; reached < 3;) {
        if (lead_batch(pair, round, context, iterations, &aside) < wanted) {
            iterations *= 2;
            reached = 0;
        } else {
            ++reached;
        }
    }
    return iterations;
}

static Stats lead(const Pair* pair, const Options* options, PairRound round, void* context, double scale) {
    static double times[kMaxBatches];
    int batches = options->batches < kMaxBatches ? options->batches : kMaxBatches;
    long iterations = options->iterations, stop = 0;
    double aside;
    if (options->warm_up > 0) lead_batch(pair, round, context, options->warm_up, &aside);
    if (iterations == 0) iterations = calibrate(pair, round, context, options->seconds / batches / 2);
    for (int i = 0; i < batches; ++i) {
        double seconds = lead_batch(pair, round, context, iterations, &aside);
        times[i] = (seconds - aside) / (double)iterations * scale;
    }
    MPI_Send(&stop, 1, MPI_LONG, pair->peer, kControlTag, pair->comm);
    return bench_stats(times, batches);
}

static void follow(const Pair* pair, PairRound round, void* context) {
    for (;;) {
        long iterations;
        MPI_Recv(&iterations, 1, MPI_LONG, pair->peer, kControlTag, pair->comm, MPI_STATUS_IGNORE);
        if (iterations == 0) return;
        round(pair, iterations, context);
    }
}

Stats bench_pair_measure(const Pair* pair, const Options* options, PairRound round, void* context, double scale) {
    static int placed;
    Stats all = {0}, one = {0};
    if (pair->role < 0) return all;
    if (!placed++) bench_turn(&all, one, 2);
    do {
        if (pair->role == 0) {
            one = lead(pair, options, round, context, scale);
        } else {
            follow(pair, round, context);
        }
    } while (bench_turn(&all, one, 2));
    return all;
}
