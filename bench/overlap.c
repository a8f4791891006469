/* Share of a communication that is hidden by computation: measures the communication, then a computation of that length, then both
 * together. Overlap is 100 % when both together take as long as the computation, 0 % when they take the sum. The computation counts
 * operations, not time, and makes no MPI call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/team.h"

enum Kind { kExchange, kBarrier, kBcast, kReduce, kAllreduce, kAllgather, kAlltoall };
typedef struct {
    const char* name;
    enum Kind kind;
} Operation;
static const Operation kOperations[] = {{"isend-irecv", kExchange}, {"ibarrier", kBarrier},     {"ibcast", kBcast},
                                        {"ireduce", kReduce},       {"iallreduce", kAllreduce}, {"iallgather", kAllgather},
                                        {"ialltoall", kAlltoall}};

typedef struct {
    enum Kind kind;
    int count, blocks; /* ints per block; number of blocks per buffer */
    int *out, *in;
    long work; /* units of computation per iteration; 0: none */
    int communicate;
} Context;

/* Process 0 of side 0 is the root of all operations. */
static int root_argument(const Team* t) {
    if (!t->inter || t->side == 1) return 0;
    return t->rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

/* Returns the partner of an exchange: the neighbor, or the process of the same rank in the other group. */
static int partner(const Team* t) {
    int peer = t->inter ? t->rank : t->rank ^ 1;
    return peer < t->size[t->inter ? 1 - t->side : 0] ? peer : -1;
}

/* Starts the operation; returns the number of requests. */
static int start(const Team* t, const Context* c, MPI_Request* requests) {
    switch (c->kind) {
        case kBarrier:
            MPI_Ibarrier(t->comm, requests);
            return 1;
        case kBcast:
            MPI_Ibcast(t->id == 0 ? c->out : c->in, c->count, MPI_INT, root_argument(t), t->comm, requests);
            return 1;
        case kReduce:
            MPI_Ireduce(c->out, c->in, c->count, MPI_INT, MPI_SUM, root_argument(t), t->comm, requests);
            return 1;
        case kAllreduce:
            MPI_Iallreduce(c->out, c->in, c->count, MPI_INT, MPI_SUM, t->comm, requests);
            return 1;
        case kAllgather:
            MPI_Iallgather(c->out, c->count, MPI_INT, c->in, c->count, MPI_INT, t->comm, requests);
            return 1;
        case kAlltoall:
            MPI_Ialltoall(c->out, c->count, MPI_INT, c->in, c->count, MPI_INT, t->comm, requests);
            return 1;
        case kExchange:
            break;
    }
    int peer = partner(t);
    if (peer < 0) return 0;
    MPI_Irecv(c->in, c->count, MPI_INT, peer, 6, t->comm, &requests[0]);
    MPI_Isend(c->out, c->count, MPI_INT, peer, 6, t->comm, &requests[1]);
    return 2;
}

static void repeat(const Team* t, long iterations, void* context) {
    const Context* c = context;
    for (long i = 0; i < iterations; ++i) {
        MPI_Request requests[2];
        int posted = c->communicate ? start(t, c, requests) : 0;
        if (c->work) bench_compute(c->work);
        if (posted) MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    }
}

/* Returns the value that process r of a side sends in position j. */
static int element(int side, int r, int j) { return side * 7001 + r * 101 + j % 8191; }

/* Returns the value that must be received in position j; *known is 0 if the position receives none. */
static int expected(const Team* t, const Context* c, int j, int* known) {
    int from = t->inter ? 1 - t->side : 0, block = j / c->count, offset = j % c->count, sum = 0;
    *known = block == 0;
    for (int r = 0; r < t->size[from]; ++r) sum += element(from, r, j);
    switch (c->kind) {
        case kBarrier:
            *known = 0;
            return 0;
        case kExchange:
            *known = block == 0 && partner(t) >= 0;
            return element(from, partner(t), j);
        case kBcast:
            *known = block == 0 && t->id != 0 && (!t->inter || t->side == 1);
            return element(0, 0, j);
        case kReduce:
            *known = block == 0 && t->id == 0;
            return sum;
        case kAllreduce:
            return sum;
        case kAllgather:
            *known = block < t->size[from];
            return element(from, block, offset);
        case kAlltoall:
            *known = block < t->size[from];
            return element(from, block, t->rank * c->count + offset);
    }
    return 0;
}

static void check(const Team* t, Context* c, const char* name) {
    int all = c->count * c->blocks;
    for (int j = 0; j < all; ++j) c->out[j] = element(t->side, t->rank, j);
    memset(c->in, 0xff, (size_t)all * sizeof(int));
    c->work = bench_units(20);
    repeat(t, 1, c);
    for (int j = 0; j < all; ++j) {
        int known, right = expected(t, c, j, &known);
        if (!known || c->in[j] == right) continue;
        fprintf(stderr, "overlap: %s of %d ints, process %d of side %d: position %d is %d instead of %d\n", name, c->count,
                t->rank, t->side, j, c->in[j], right);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static double run(const Team* t, const Options* options, Context* c, long work, int communicate) {
    c->work = work;
    c->communicate = communicate;
    double value = bench_team_measure(t, options, repeat, c, 1e6).value;
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, t->control);
    return value;
}

static void measure(const Team* t, const Options* options, const Operation* o, size_t bytes, Report* report) {
    int blocks = t->size[0] > t->size[1] ? t->size[0] : t->size[1];
    int count = bytes < sizeof(int) ? 1 : (int)(bytes / sizeof(int));
    size_t memory = (size_t)blocks * (size_t)count * sizeof(int);
    Context c = {o->kind, count, blocks, bench_buffer(memory), bench_buffer(memory), 0, 1};
    if (options->check) check(t, &c, o->name);
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
    defaults.sizes = "1024,32768,1048576";
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "overlap of communication and computation", defaults);
    Team team = bench_team(&options, argv);
    Report* report = bench_report("overlap", "% or us", &options);
    for (size_t k = 0; k < sizeof kOperations / sizeof kOperations[0]; ++k) {
        const Operation* o = &kOperations[k];
        if (!bench_wanted(&options, o->name)) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
            measure(&team, &options, o, (size_t)bytes, report);
            if (o->kind == kBarrier) break;
        }
    }
    bench_team_print(&team, report);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
