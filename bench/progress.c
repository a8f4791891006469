/* The cost of waiting for processes that have work, which shows when processes outnumber cores.
 *
 * - pairs: all pairs of neighbors exchange 8 bytes: half a round trip.
 * - waiting: only processes 0 and 1 exchange messages, the others wait in a barrier.
 * - ring: a token circulates: time per hop.
 * - work: every other process computes for 1000 us, the rest wait for it in a barrier: time per round. The
 *   lower limit is the work of half of the processes, divided by the number of cores.
 *
 * The size of a row is the number of processes. */

#include "common/team.h"

enum { kTag = 3 };

static void send_token(const Team* t, long token, int to) { MPI_Send(&token, 1, MPI_LONG, to, kTag, t->comm); }

static void take_token(const Team* t, long expected, int from) {
    long token = -1;
    MPI_Recv(&token, 1, MPI_LONG, from, kTag, t->comm, MPI_STATUS_IGNORE);
    bench_require(token == expected, "a token is wrong");
}

static void back_and_forth(const Team* t, long iterations) {
    int peer = t->rank ^ 1;
    if (peer >= t->total) return;
    for (long i = 0; i < iterations; ++i) {
        if (t->rank < peer) send_token(t, i, peer);
        take_token(t, i, peer);
        if (t->rank > peer) send_token(t, i, peer);
    }
}

static void pairs(const Team* t, long iterations, void* context) {
    (void)context;
    back_and_forth(t, iterations);
}

static void waiting(const Team* t, long iterations, void* context) {
    (void)context;
    if (t->rank < 2) back_and_forth(t, iterations);
    MPI_Barrier(t->comm);
}

static void ring(const Team* t, long iterations, void* context) {
    (void)context;
    int next = (t->rank + 1) % t->total, last = (t->rank + t->total - 1) % t->total;
    for (long i = 0; i < iterations; ++i) {
        if (t->rank == 0) send_token(t, i, next);
        take_token(t, i, last);
        if (t->rank != 0) send_token(t, i, next);
    }
}

static void work(const Team* t, long iterations, void* context) {
    const long* units = context;
    for (long i = 0; i < iterations; ++i) {
        if (t->rank % 2 == 0) bench_compute(*units);
        MPI_Barrier(t->comm);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "waiting; -o pairs,waiting,ring,work", defaults);
    options.children = 0;
    Team team = bench_team(&options, argv);
    bench_require(team.total >= 2, "there must be at least two processes");
    const struct {
        const char* name;
        TeamRound round;
        double scale;
    } operations[] = {
        {"pairs", pairs, 1e6 / 2}, {"waiting", waiting, 1e6 / 2}, {"ring", ring, 1e6 / team.total}, {"work", work, 1e6}};
    long units = bench_units(1000);
    Report* report = bench_report("progress", "us", &options);
    for (size_t k = 0; k < sizeof operations / sizeof operations[0]; ++k) {
        if (!bench_wanted(&options, operations[k].name)) continue;
        Stats s = bench_team_measure(&team, &options, operations[k].round, &units, operations[k].scale);
        bench_row(report, operations[k].name, team.total, s);
    }
    bench_team_print(&team, report);
    MPI_Finalize();
    return 0;
}
