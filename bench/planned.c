/* Collectives that a program repeats. Neighborhood collectives on a periodic grid of two dimensions, and allreduce, each run as a blocking
 * call and as start and wait of a persistent one. There are also a barrier, and a fence of a window without accesses. Time per call in the
 * slowest process. Sizes are bytes per block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/team.h"

#define HAS_PERSISTENT (MPI_VERSION >= 4)

enum Kind { kNeighbor, kNeighborStart, kAllreduce, kAllreduceStart, kBarrier, kFence };
static const struct {
    const char* name;
    enum Kind kind;
} kOperations[] = {
    {"neighbor-alltoall", kNeighbor},
    {"allreduce", kAllreduce},
    {"barrier", kBarrier},
    {"fence", kFence},
#if HAS_PERSISTENT
    {"neighbor-alltoall-start", kNeighborStart},
    {"allreduce-start", kAllreduceStart},
#endif
};
enum { kNeighbors = 4 };

typedef struct {
    enum Kind kind;
    MPI_Comm grid;
    int count; /* number of ints per block */
    int *out, *in;
    MPI_Request request;
    MPI_Win win;
} Context;

static int has_data(enum Kind kind) { return kind != kBarrier && kind != kFence; }

static void prepare(Context* c) {
    c->request = MPI_REQUEST_NULL;
    if (c->kind == kFence) MPI_Win_create(c->in, sizeof(int), 1, MPI_INFO_NULL, c->grid, &c->win);
#if HAS_PERSISTENT
    if (c->kind == kNeighborStart)
        MPI_Neighbor_alltoall_init(c->out, c->count, MPI_INT, c->in, c->count, MPI_INT, c->grid, MPI_INFO_NULL, &c->request);
    if (c->kind == kAllreduceStart)
        MPI_Allreduce_init(c->out, c->in, c->count, MPI_INT, MPI_SUM, c->grid, MPI_INFO_NULL, &c->request);
#endif
}

static void repeat(const Team* t, long iterations, void* context) {
    Context* c = context;
    (void)t;
    for (long i = 0; i < iterations; ++i) {
        if (c->request != MPI_REQUEST_NULL) {
            MPI_Start(&c->request);
            MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        } else if (c->kind == kBarrier) {
            MPI_Barrier(c->grid);
        } else if (c->kind == kFence) {
            MPI_Win_fence(0, c->win);
        } else if (c->kind == kNeighbor) {
            MPI_Neighbor_alltoall(c->out, c->count, MPI_INT, c->in, c->count, MPI_INT, c->grid);
        } else {
            MPI_Allreduce(c->out, c->in, c->count, MPI_INT, MPI_SUM, c->grid);
        }
    }
}

static int element(int rank, int block, int j) { return rank * 5003 + block * 101 + j % 997; }

/* Checks the received data: block b comes from the neighbor in direction b, which sent it in the opposite direction. */
static void verify(const Team* t, const Context* c, const char* name) {
    const int neighbors = c->kind == kNeighbor || c->kind == kNeighborStart;
    for (int b = 0; b < (neighbors ? kNeighbors : 1); ++b) {
        int below, above;
        MPI_Cart_shift(c->grid, b / 2, 1, &below, &above);
        for (int j = 0; j < c->count; ++j) {
            int right = 0;
            if (neighbors) right = element(b % 2 ? above : below, b ^ 1, j);
            for (int r = 0; r < t->total && !neighbors; ++r) right += element(r, 0, j);
            if (c->in[b * c->count + j] == right) continue;
            fprintf(stderr, "planned: %s, process %d, block %d: position %d is wrong\n", name, t->id, b, j);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
}

static void measure(const Team* t, const Options* options, MPI_Comm grid, int operation, size_t bytes, Report* report) {
    Context c = {kOperations[operation].kind,
                 grid,
                 bytes < sizeof(int) ? 1 : (int)(bytes / sizeof(int)),
                 0,
                 0,
                 MPI_REQUEST_NULL,
                 MPI_WIN_NULL};
    size_t memory = kNeighbors * (size_t)c.count * sizeof(int);
    c.out = bench_buffer(memory);
    c.in = bench_buffer(memory);
    for (int b = 0; b < kNeighbors; ++b)
        for (int j = 0; j < c.count; ++j) c.out[b * c.count + j] = element(t->id, b, j);
    prepare(&c);
    for (int i = 0; options->check && has_data(c.kind) && i < 3; ++i) {
        memset(c.in, 0xff, memory);
        repeat(t, 1, &c);
        verify(t, &c, kOperations[operation].name);
    }
    bench_row(report, kOperations[operation].name, (long)bytes, bench_team_measure(t, options, repeat, &c, 1e6));
    if (c.request != MPI_REQUEST_NULL) MPI_Request_free(&c.request);
    if (c.win != MPI_WIN_NULL) MPI_Win_free(&c.win);
    free(c.out);
    free(c.in);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "8,1024,16384";
    Options options = bench_options(argc, argv, "repeated collectives", defaults);
    Team team = bench_team(&options, argv);
    int dims[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Comm grid;
    MPI_Dims_create(team.total, 2, dims);
    MPI_Cart_create(team.control, 2, dims, periods, 0, &grid);
    Report* report = bench_report("planned", "us", &options);
    for (int k = 0; k < (int)(sizeof kOperations / sizeof kOperations[0]); ++k) {
        if (!bench_wanted(&options, kOperations[k].name)) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0;
             bytes = has_data(kOperations[k].kind) ? bench_next_size(&options, bytes) : -1)
            measure(&team, &options, grid, k, (size_t)bytes, report);
    }
    bench_team_print(&team, report);
    MPI_Comm_free(&grid);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
