/* Several small non-blocking collectives in progress on one communicator: all are started, then all are awaited; time per operation in the
 * slowest process. -k: number of operations; -s: bytes per block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/team.h"

enum Kind { kBarrier, kBcast, kReduce, kAllreduce, kAllgather };
static const struct {
    const char* name;
    enum Kind kind;
} kOperations[] = {
    {"ibarrier", kBarrier}, {"ibcast", kBcast}, {"ireduce", kReduce}, {"iallreduce", kAllreduce}, {"iallgather", kAllgather}};

typedef struct {
    enum Kind kind;
    int count, outstanding; /* ints per block; number of operations at a time */
    int *out, *in;          /* buffers of each operation, one block per process */
    MPI_Request* requests;
} Context;

static size_t block(const Team* t, const Context* c, int operation) {
    return (size_t)operation * (size_t)t->total * (size_t)c->count;
}

/* Roots rotate from operation to operation. */
static void start(const Team* t, const Context* c, int i) {
    int *out = c->out + block(t, c, i), *in = c->in + block(t, c, i), root = i % t->total;
    MPI_Request* request = &c->requests[i];
    switch (c->kind) {
        case kBarrier:
            MPI_Ibarrier(t->comm, request);
            break;
        case kBcast:
            MPI_Ibcast(t->id == root ? out : in, c->count, MPI_INT, root, t->comm, request);
            break;
        case kReduce:
            MPI_Ireduce(out, in, c->count, MPI_INT, MPI_SUM, root, t->comm, request);
            break;
        case kAllreduce:
            MPI_Iallreduce(out, in, c->count, MPI_INT, MPI_SUM, t->comm, request);
            break;
        case kAllgather:
            MPI_Iallgather(out, c->count, MPI_INT, in, c->count, MPI_INT, t->comm, request);
    }
}

static void repeat(const Team* t, long iterations, void* context) {
    const Context* c = context;
    for (long i = 0; i < iterations; ++i) {
        for (int k = 0; k < c->outstanding; ++k) start(t, c, k);
        MPI_Waitall(c->outstanding, c->requests, MPI_STATUSES_IGNORE);
    }
}

static int element(int operation, int rank, int j) { return operation * 5003 + rank * 101 + j % 997; }

static void verify(const Team* t, const Context* c, const char* name, int i) {
    const int root = i % t->total;
    for (int j = 0; j < (c->kind == kAllgather ? t->total : 1) * c->count; ++j) {
        int right = 0;
        if (c->kind == kBarrier || (c->kind == kReduce && t->id != root) || (c->kind == kBcast && t->id == root)) return;
        if (c->kind == kAllgather) right = element(i, j / c->count, j % c->count);
        if (c->kind == kBcast) right = element(i, root, j);
        for (int r = 0; r < t->total && (c->kind == kReduce || c->kind == kAllreduce); ++r) right += element(i, r, j);
        if (c->in[block(t, c, i) + (size_t)j] == right) continue;
        fprintf(stderr, "outstanding: %s %d of %d, process %d: position %d is wrong\n", name, i, c->outstanding, t->id, j);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static void measure(const Team* t, const Options* options, int operation, size_t bytes, int outstanding, Report* report) {
    Context c = {kOperations[operation].kind, bytes < sizeof(int) ? 1 : (int)(bytes / sizeof(int)), outstanding, 0, 0, 0};
    size_t memory = block(t, &c, outstanding) * sizeof(int);
    c.out = bench_buffer(memory);
    c.in = bench_buffer(memory);
    c.requests = malloc((size_t)outstanding * sizeof *c.requests);
    if (options->check) {
        memset(c.in, 0xff, memory);
        for (int i = 0; i < outstanding; ++i)
            for (int j = 0; j < c.count; ++j) c.out[block(t, &c, i) + (size_t)j] = element(i, t->id, j);
        repeat(t, 1, &c);
        for (int i = 0; i < outstanding; ++i) verify(t, &c, kOperations[operation].name, i);
    }
    Stats stats = bench_team_measure(t, options, repeat, &c, 1e6 / outstanding);
    char name[40];
    snprintf(name, sizeof name, "%s-of-%d", kOperations[operation].name, outstanding);
    bench_row(report, name, (long)bytes, stats);
    free(c.requests);
    free(c.out);
    free(c.in);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "4";
    defaults.counts = "1,8,32";
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "small collectives in progress at the same time", defaults);
    Team team = bench_team(&options, argv);
    Report* report = bench_report("outstanding", "us", &options);
    for (int k = 0; k < (int)(sizeof kOperations / sizeof kOperations[0]); ++k) {
        if (!bench_wanted(&options, kOperations[k].name)) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes))
            for (long n = bench_next_of(options.counts, 0); n > 0; n = bench_next_of(options.counts, n))
                measure(&team, &options, k, (size_t)bytes, (int)n, report);
    }
    bench_team_print(&team, report);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
