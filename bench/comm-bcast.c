/* Effective latency: creates a communicator and uses it for n broadcasts; the total time per broadcast in the slowest process. It shows
 * which operations pay for a new communicator, and when. With --compute each process computes for that many microseconds between creation
 * and use, during which a library may finish its set-up. The time of the computation alone is subtracted (0: the computation hides
 * everything). Roots rotate. -k: numbers of broadcasts; -s: message sizes; --spawn K: the communicators are made from one of parents and
 * children. */
#include <stdio.h>
#include <stdlib.h>

#include "common/team.h"

enum Kind { kDup, kSplit, kCreate, kFresh, kKinds };
static const char* const kNames[] = {"dup", "split", "create", "fresh"};

typedef struct {
    enum Kind kind;
    long broadcasts, work;
    char* buffer;
    int bytes, check;
    MPI_Group first_half, all;
    unsigned drawn; /* state of the random numbers for -o fresh, equal in all processes */
} Context;

/* Chooses half of the processes, a different half each time; returns whether this process is one of them. */
static int draw(const Team* t, Context* c, MPI_Group* members) {
    int ranks[t->total], n = t->total;
    for (int i = 0; i < n; ++i) ranks[i] = i;
    for (int left = n; left > (n + 1) / 2; --left) {
        c->drawn = c->drawn * 1664525u + 1013904223u;
        ranks[(c->drawn >> 8) % (unsigned)left] = ranks[left - 1];
    }
    MPI_Group_incl(c->all, (n + 1) / 2, ranks, members);
    int mine;
    MPI_Group_rank(*members, &mine);
    return mine != MPI_UNDEFINED;
}

/* Creates a communicator. dup: all processes; split: two halves, of every other process each; create: the first half; fresh: a random half.
 * A random half has most likely not been together before, as in programs whose communicators follow their data. So a library cannot reuse
 * the state of an earlier communicator. */
static MPI_Comm make(const Team* t, Context* c) {
    MPI_Comm made = MPI_COMM_NULL;
    switch (c->kind) {
        case kDup:
            MPI_Comm_dup(t->control, &made);
            break;
        case kSplit:
            MPI_Comm_split(t->control, t->id % 2, t->id, &made);
            break;
        case kCreate:
            if (t->id < (t->total + 1) / 2) MPI_Comm_create_group(t->control, c->first_half, 5, &made);
            break;
        case kFresh: {
            MPI_Group members;
            if (draw(t, c, &members)) MPI_Comm_create_group(t->control, members, 5, &made);
            MPI_Group_free(&members);
            break;
        }
        case kKinds:
            break;
    }
    return made;
}

static void use(MPI_Comm comm, const Context* c) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (long i = 0; i < c->broadcasts; ++i) {
        int root = (int)(i % size);
        if (c->check) bench_fill(c->buffer, (size_t)c->bytes, rank == root ? (unsigned)i : 250);
        MPI_Bcast(c->buffer, c->bytes, MPI_BYTE, root, comm);
        if (c->check) bench_verify(c->buffer, (size_t)c->bytes, (unsigned)i, "a broadcast");
    }
}

static void repeat(const Team* t, long iterations, void* context) {
    Context* c = context;
    for (long i = 0; i < iterations; ++i) {
        MPI_Comm made = make(t, c);
        if (c->work) bench_compute(c->work);
        if (made == MPI_COMM_NULL) continue;
        use(made, c);
        MPI_Comm_free(&made);
    }
}

static void only_work(const Team* t, long iterations, void* context) {
    const Context* c = context;
    (void)t;
    for (long i = 0; i < iterations; ++i) bench_compute(c->work);
}

/* Returns the microseconds that the computation alone takes. */
static double work_time(const Team* t, const Options* options, Context* c, long microseconds) {
    c->work = bench_units((double)microseconds);
    return microseconds ? bench_team_measure(t, options, only_work, c, 1e6).value : 0;
}

/* Returns microseconds per broadcast, without the time of the computation. */
static Stats measure(const Team* t, const Options* options, Context* c, double work) {
    c->check = options->check;
    if (c->check) repeat(t, 2, c);
    c->check = 0;
    Stats s = bench_team_measure(t, options, repeat, c, 1e6);
    double* parts[] = {&s.value, &s.min, &s.mean, &s.max};
    for (int i = 0; i < 4; ++i) {
        double left = (*parts[i] - work) / (double)c->broadcasts;
        *parts[i] = left > 0 ? left : 0;
    }
    return s;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "1024";
    defaults.max_bytes = 1024;
    defaults.counts = "1,10,100,1000";
    defaults.compute = "0,100,1000";
    Options options = bench_options(argc, argv, "creation of a communicator and broadcasts on it", defaults);
    options.warm_up = 1;
    Team team = bench_team(&options, argv);
    Report* report = bench_report("comm-bcast", "us per broadcast", &options);
    Context c = {kDup, 0, 0, bench_buffer(options.max_bytes), (int)options.max_bytes, 0, MPI_GROUP_NULL, MPI_GROUP_NULL, 1};
    int range[1][3] = {{0, (team.total + 1) / 2 - 1, 1}};
    MPI_Comm_group(team.control, &c.all);
    MPI_Group_range_incl(c.all, 1, range, &c.first_half);
    for (int kind = kDup; kind < kKinds; ++kind) {
        if (!bench_wanted(&options, kNames[kind])) continue;
        c.kind = kind;
        for (long us = bench_next_of(options.compute, -1); us >= 0; us = bench_next_of(options.compute, us)) {
            char name[40];
            double work = work_time(&team, &options, &c, us);
            snprintf(name, sizeof name, us ? "%s-compute-%ld" : "%s", kNames[kind], us);
            for (long n = bench_next_of(options.counts, 0); n > 0; n = bench_next_of(options.counts, n)) {
                c.broadcasts = n;
                Stats effective = measure(&team, &options, &c, work);
                bench_row(report, name, n, effective);
            }
        }
    }
    MPI_Group_free(&c.all);
    MPI_Group_free(&c.first_half);
    bench_team_print(&team, report);
    free(c.buffer);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
