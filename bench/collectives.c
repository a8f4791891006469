/* Collective operations, in one job or between parents and children: time per call in the slowest process (-f: the minimum, mean and
 * maximum over the processes, too). Roots rotate from call to call, so that calls cannot overtake each other. Between two groups the
 * direction of rooted operations alternates, too. Sizes are bytes per block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/team.h"

typedef struct {
    int *in, *out;
    int count;   /* number of ints per block */
    int blocks;  /* number of blocks: one per process of the larger group */
    int* shares; /* number of ints that each process of this group gets from reduce_scatter */
} Work;

/* The root of a call, and the role of the calling process. */
typedef struct {
    int side, rank; /* side and rank of the root */
    int argument;   /* value of the root argument in this process */
    int i_am;       /* whether this process is the root */
    int in_side;    /* whether this process receives in a bcast or scatter, or sends in a reduce or gather */
} Root;

static Root root_of(const Team* t, long i) {
    Root root = {0, 0, 0, 0, 0};
    root.side = t->inter ? (int)(i % 2) : 0;
    root.rank = (int)((t->inter ? i / 2 : i) % t->size[root.side]);
    root.i_am = t->side == root.side && t->rank == root.rank;
    root.in_side = !t->inter || t->side != root.side;
    root.argument = root.rank;
    if (t->inter && t->side == root.side) root.argument = root.i_am ? MPI_ROOT : MPI_PROC_NULL;
    return root;
}

static void barrier(const Team* t, const Work* w, long i) {
    (void)w, (void)i;
    MPI_Barrier(t->comm);
}
static void bcast(const Team* t, const Work* w, long i) {
    Root root = root_of(t, i);
    MPI_Bcast(root.i_am ? w->in : w->out, w->count, MPI_INT, root.argument, t->comm);
}
static void reduce(const Team* t, const Work* w, long i) {
    MPI_Reduce(w->in, w->out, w->count, MPI_INT, MPI_SUM, root_of(t, i).argument, t->comm);
}
static void gather(const Team* t, const Work* w, long i) {
    MPI_Gather(w->in, w->count, MPI_INT, w->out, w->count, MPI_INT, root_of(t, i).argument, t->comm);
}
static void scatter(const Team* t, const Work* w, long i) {
    MPI_Scatter(w->in, w->count, MPI_INT, w->out, w->count, MPI_INT, root_of(t, i).argument, t->comm);
}
static void allreduce(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Allreduce(w->in, w->out, w->count, MPI_INT, MPI_SUM, t->comm);
}
static void allgather(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Allgather(w->in, w->count, MPI_INT, w->out, w->count, MPI_INT, t->comm);
}
static void alltoall(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Alltoall(w->in, w->count, MPI_INT, w->out, w->count, MPI_INT, t->comm);
}
static void scan(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Scan(w->in, w->out, w->count, MPI_INT, MPI_SUM, t->comm);
}
static void reduce_scatter(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Reduce_scatter(w->in, w->out, w->shares, MPI_INT, MPI_SUM, t->comm);
}
static void reduce_scatter_block(const Team* t, const Work* w, long i) {
    (void)i;
    MPI_Reduce_scatter_block(w->in, w->out, w->shares[0], MPI_INT, MPI_SUM, t->comm);
}

typedef void (*Call)(const Team*, const Work*, long);
enum { kNever, kAlways, kEqual };
typedef struct {
    const char* name;
    Call call;
    int sized;    /* whether the operation has a message size */
    int inter;    /* whether the operation exists between groups: always, never, or if shares are equal */
    long largest; /* bytes per block above which the operation is not measured */
} Operation;

static const Operation kOperations[] = {
    {"barrier", barrier, 0, kAlways, 0},
    {"bcast", bcast, 1, kAlways, 1 << 20},
    {"allreduce", allreduce, 1, kAlways, 1 << 20},
    {"reduce", reduce, 1, kAlways, 1 << 20},
    {"allgather", allgather, 1, kAlways, 1 << 20},
    {"alltoall", alltoall, 1, kAlways, 1 << 20},
    {"gather", gather, 1, kAlways, 1 << 16},
    {"scatter", scatter, 1, kAlways, 1 << 16},
    {"reduce_scatter", reduce_scatter, 1, kAlways, 1 << 16},
    {"reduce_scatter_block", reduce_scatter_block, 1, kEqual, 1 << 16},
    {"scan", scan, 1, kNever, 1 << 16},
};
enum { kOperationCount = sizeof kOperations / sizeof kOperations[0] };

static int exists(const Team* t, const Operation* o) {
    int small = t->size[0] < t->size[1] ? t->size[0] : t->size[1];
    int large = t->size[0] + t->size[1] - small;
    return !t->inter || o->inter == kAlways || (o->inter == kEqual && large % small == 0);
}

/* Returns the value that process (side, rank) has at position j of its input. */
static int element(int side, int rank, int j) { return (side * 31 + rank) * 1009 + j % 997; }

static int sum_of(int side, int j, int ranks) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += element(side, r, j);
    return sum;
}

/* Returns the required value at position j of the output after call i; *known is 0 if the operation does not define it. */
static int expected(const Team* t, const char* name, const Work* w, long i, int j, int* known) {
    int from = t->inter ? 1 - t->side : t->side; /* the side whose data is received */
    int block = j / w->count, offset = j % w->count;
    Root root = root_of(t, i);
    *known = 1;
    if (!strcmp(name, "allreduce") && block == 0) return sum_of(from, j, t->size[from]);
    if (!strcmp(name, "allgather") && block < t->size[from]) return element(from, block, offset);
    if (!strcmp(name, "alltoall") && block < t->size[from]) return element(from, block, t->rank * w->count + offset);
    if (!strcmp(name, "scan") && block == 0) return sum_of(0, j, t->rank + 1);
    if (!strncmp(name, "reduce_scatter", 14) && j < w->shares[t->rank]) {
        int before = 0;
        for (int r = 0; r < t->rank; ++r) before += w->shares[r];
        return sum_of(from, before + j, t->size[from]);
    }
    if (!strcmp(name, "bcast") && block == 0 && root.in_side && !root.i_am) return element(root.side, root.rank, j);
    if (!strcmp(name, "scatter") && block == 0 && root.in_side) {
        return element(root.side, root.rank, t->rank * w->count + j);
    }
    if (!strcmp(name, "reduce") && block == 0 && root.i_am) return sum_of(from, j, t->size[from]);
    if (!strcmp(name, "gather") && root.i_am && block < t->size[from]) return element(from, block, offset);
    *known = 0;
    return 0;
}

static void check(const Team* t, const Operation* o, const Work* w) {
    for (int j = 0; j < w->count * w->blocks; ++j) w->in[j] = element(t->side, t->rank, j);
    for (long i = 0; i < 4; ++i) {
        memset(w->out, 0xff, (size_t)w->count * (size_t)w->blocks * sizeof(int));
        o->call(t, w, i);
        for (int j = 0; j < w->count * w->blocks && o->sized; ++j) {
            int known, right = expected(t, o->name, w, i, j, &known);
            if (!known || w->out[j] == right) continue;
            fprintf(stderr, "collectives: %s of %d ints, process %d of side %d: position %d is %d instead of %d\n", o->name,
                    w->count, t->rank, t->side, j, w->out[j], right);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
}

typedef struct {
    const Operation* operation;
    Work work;
} Context;

static void repeat(const Team* t, long iterations, void* context) {
    const Context* c = context;
    for (long i = 0; i < iterations; ++i) c->operation->call(t, &c->work, i);
}

static Work make_work(const Team* t, size_t bytes) {
    Work w = {NULL, NULL, bytes < 4 ? 1 : (int)(bytes / 4), 0, NULL};
    w.blocks = t->size[0] > t->size[1] ? t->size[0] : t->size[1];
    size_t memory = (size_t)w.count * sizeof(int) * (size_t)w.blocks;
    w.in = bench_buffer(memory);
    w.out = bench_buffer(memory);
    int all = w.count * w.blocks, own = t->size[t->side];
    w.shares = malloc((size_t)own * sizeof(int));
    for (int r = 0; r < own; ++r) w.shares[r] = all / own + (r < all % own);
    return w;
}

static void measure(const Team* t, const Options* options, const Operation* o, size_t bytes, Report* report) {
    Context context = {o, make_work(t, bytes)};
    if (options->check) check(t, o, &context.work);
    Stats stats = bench_team_measure(t, options, repeat, &context, 1e6);
    bench_row(report, o->name, o->sized ? (long)context.work.count * 4 : 0, stats);
    free(context.work.in);
    free(context.work.out);
    free(context.work.shares);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 8;
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "collective operations", defaults);
    Team team = bench_team(&options, argv);
    Report* report = bench_report("collectives", "us", &options);
    for (int k = 0; k < kOperationCount; ++k) {
        const Operation* o = &kOperations[k];
        if (!bench_wanted(&options, o->name) || !exists(&team, o)) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
            if (o->sized && (bytes < 4 || bytes > o->largest)) continue;
            measure(&team, &options, o, (size_t)bytes, report);
            if (!o->sized) break;
        }
    }
    bench_team_print(&team, report);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
