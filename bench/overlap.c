/* How much of a communication hides behind computing: T(communication), then a computation of that length,
 * then both at a time. Overlap is 100 % when both together take as long as the computation, 0 % when they
 * take the sum. The computation counts operations, not time, and makes no MPI call. */
#include <stdio.h>
#include <stdlib.h>

#include "common/team.h"

typedef struct {
    const char* name;
    int kind;
} Operation;
enum { kExchange, kBarrier, kAllreduce, kBcast };
static const Operation kOperations[] = {
    {"isend-irecv", kExchange}, {"ibarrier", kBarrier}, {"iallreduce", kAllreduce}, {"ibcast", kBcast}};

typedef struct {
    int kind, bytes;
    char *out, *in;
    long work; /* units of compute() per iteration; 0: none */
    int communicate;
} Context;

static volatile double sink;

/* About 1 us per unit on a current processor. */
static void compute(long units) {
    double x = 1.0;
    for (long i = 0; i < units * 250; ++i) x = x * 0.999999 + 1e-6;
    sink = x;
}

static int start(const Team* t, const Context* c, MPI_Request* requests) {
    int peer = t->rank ^ 1;
    switch (c->kind) {
        case kBarrier:
            MPI_Ibarrier(t->comm, requests);
            return 1;
        case kBcast:
            MPI_Ibcast(c->out, c->bytes, MPI_BYTE, 0, t->comm, requests);
            return 1;
        case kAllreduce:
            MPI_Iallreduce(c->out, c->in, (c->bytes + 3) / 4, MPI_INT, MPI_SUM, t->comm, requests);
            return 1;
        default:
            break;
    }
    if (peer >= t->size[0]) return 0;
    MPI_Irecv(c->in, c->bytes, MPI_BYTE, peer, 6, t->comm, &requests[0]);
    MPI_Isend(c->out, c->bytes, MPI_BYTE, peer, 6, t->comm, &requests[1]);
    return 2;
}

static void repeat(const Team* t, long iterations, void* context) {
    const Context* c = context;
    for (long i = 0; i < iterations; ++i) {
        MPI_Request requests[2];
        int posted = c->communicate ? start(t, c, requests) : 0;
        if (c->work) compute(c->work);
        if (posted) MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    }
}

static double run(const Team* t, const Options* options, Context* c, long work, int communicate) {
    Stats slowest, mean;
    c->work = work;
    c->communicate = communicate;
    bench_team_measure(t, options, repeat, c, 1e6, &slowest, &mean);
    double value = slowest.value;
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, t->control);
    return value;
}

static void measure(const Team* t, const Options* options, const Operation* o, size_t bytes,
                    Report* report) {
    Context c = {o->kind, (int)bytes, bench_buffer(bytes + 4), bench_buffer(bytes + 4), 0, 1};
    double communication = run(t, options, &c, 0, 1);
    double per_unit = run(t, options, &c, 1000, 0) / 1000;
    long units = (long)(communication / per_unit) + 1;
    double computation = run(t, options, &c, units, 0);
    double together = run(t, options, &c, units, 1);
    double overlap = 100 * (1 - (together - computation) / communication);
    overlap = overlap < 0 ? 0 : overlap > 100 ? 100 : overlap;
    char name[40];
    snprintf(name, sizeof name, "%s-time-us", o->name);
    bench_row(report, name, (long)bytes, bench_stats(&communication, 1));
    snprintf(name, sizeof name, "%s-overlap", o->name);
    bench_row(report, name, (long)bytes, bench_stats(&overlap, 1));
    free(c.out);
    free(c.in);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 1024;
    Options options = bench_options(argc, argv, "communication behind computation", defaults);
    options.children = 0;
    Team team = bench_team(&options, argv);
    Report* report = bench_report("overlap", "% or us", &options);
    for (size_t k = 0; k < sizeof kOperations / sizeof kOperations[0]; ++k) {
        const Operation* o = &kOperations[k];
        if (!bench_wanted(&options, o->name)) continue;
        for (size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 32) {
            measure(&team, &options, o, bytes, report);
            if (o->kind == kBarrier) break;
        }
    }
    char ranks[32];
    bench_team_name(&team, ranks, sizeof ranks);
    if (team.id == 0) bench_print(report, ranks);
    MPI_Finalize();
    return 0;
}
