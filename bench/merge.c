/* Communicators made from an inter-communicator between parents and as many children (or --spawn K): MPI_Intercomm_merge, MPI_Comm_dup, and
 * MPI_Intercomm_create between the two halves of the merged one. From the merged one, a duplicate and windows, of existing memory
 * (MPI_Win_create) and of new memory (MPI_Win_allocate). Only the call itself is timed, not the freeing of its result. The value is the
 * slowest process's mean per call; -f: the minimum, mean and maximum over the processes. */

#include "common/team.h"

typedef struct {
    MPI_Comm half; /* intra-communicator of this process's group */
    MPI_Comm made;
    MPI_Win window; /* result of the operation if it is a window */
    char memory[64];
} Making;

static void merge(const Team* t, Making* m) { MPI_Intercomm_merge(t->comm, t->side, &m->made); }
static void dup(const Team* t, Making* m) { MPI_Comm_dup(t->comm, &m->made); }
static void create(const Team* t, Making* m) {
    MPI_Intercomm_create(m->half, 0, t->control, t->side == 0 ? t->size[0] : 0, 9, &m->made);
}

static void dup_merged(const Team* t, Making* m) { MPI_Comm_dup(t->control, &m->made); }
static void window(const Team* t, Making* m) {
    MPI_Win_create(m->memory, sizeof m->memory, 1, MPI_INFO_NULL, t->control, &m->window);
}
static void window_allocate(const Team* t, Making* m) {
    void* memory;
    MPI_Win_allocate(sizeof m->memory, 1, MPI_INFO_NULL, t->control, &memory, &m->window);
}

typedef struct {
    const char* name;
    void (*make)(const Team*, Making*);
    enum { kIntra, kInter, kWindow } result;
} Operation;
static const Operation kOperations[] = {{"merge", merge, kIntra},    {"dup", dup, kInter},
                                        {"create", create, kInter},  {"dup-merged", dup_merged, kIntra},
                                        {"window", window, kWindow}, {"window-allocate", window_allocate, kWindow}};

/* Checks that the new communicator has the right processes in the right order, and transfers data. */
static void check(const Team* t, const Operation* o, MPI_Comm made) {
    int inter, rank, size, sum = 0;
    if (o->result == kWindow) return;
    MPI_Comm_test_inter(made, &inter);
    MPI_Comm_rank(made, &rank);
    MPI_Comm_size(made, &size);
    bench_require(inter == (o->result == kInter), "the wrong kind of communicator was made");
    bench_require(rank == (inter ? t->rank : t->id), "a process has the wrong rank");
    bench_require(size == (inter ? t->size[t->side] : t->total), "the group has the wrong size");
    MPI_Allreduce(&t->id, &sum, 1, MPI_INT, MPI_SUM, made);
    int parents = t->size[0] * (t->size[0] - 1) / 2, all = t->total * (t->total - 1) / 2;
    bench_require(sum == (!inter ? all : t->side == 0 ? all - parents : parents), "the sum is wrong");
}

static Stats measure(const Team* t, const Options* options, const Operation* o, Making* m) {
    double seconds = 0;
    for (long i = -options->warm_up; i < options->iterations; ++i) {
        double before = bench_now();
        o->make(t, m);
        if (i >= 0) seconds += bench_now() - before;
        if (options->check) check(t, o, m->made);
        if (o->result == kWindow)
            MPI_Win_free(&m->window);
        else
            MPI_Comm_free(&m->made);
    }
    Stats stats = bench_over_processes(t->control, seconds / (double)options->iterations * 1e6);
    stats.value = stats.max;
    return stats;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    MPI_Comm_size(MPI_COMM_WORLD, &defaults.children);
    defaults.iterations = 100;
    Options options = bench_options(argc, argv, "communicators made from an inter-communicator", defaults);
    Team team = bench_team(&options, argv);
    bench_require(team.inter && options.iterations > 0, "--spawn and -i take a positive number");
    Report* report = bench_report("merge", "us", &options);
    Making making;
    MPI_Comm_split(team.control, team.side, team.rank, &making.half);
    for (size_t k = 0; k < sizeof kOperations / sizeof kOperations[0]; ++k) {
        const Operation* o = &kOperations[k];
        if (!bench_wanted(&options, o->name)) continue;
        Stats stats = measure(&team, &options, o, &making);
        bench_row(report, o->name, team.size[1], stats);
    }
    bench_team_print(&team, report);
    MPI_Comm_free(&making.half);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
