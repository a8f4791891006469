/* A task farm whose workers are part of the job or spawned. Measures the time from the first task to the last result and the end of all
 * workers, for each number of tasks (-k). The cost of the tasks varies; it is --compute us on average. Three operations:
 *
 *     mpiexec -n 5 task-farm                 static: four workers wait as members of the job
 *     mpiexec -n 1 task-farm --spawn 4       spawned: four workers spawned by one call, disconnected at the end
 *                                            grown: workers spawned one by one, while the earlier ones work */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/bench.h"

enum { kTaskTag = 1, kResultTag };
enum { kLeave = -1 };
enum { kMaxRepetitions = 1000 };

typedef struct {
    long number; /* number of the task; kLeave: no more tasks */
    long units;
} Task;

typedef struct {
    MPI_Comm comm;
    int rank; /* rank of this process in comm */
} Worker;

typedef struct {
    const Options* options;
    char** argv;
    Worker* workers;
    MPI_Request* requests; /* requests for each worker's next result; MPI_REQUEST_NULL: the worker is idle */
    uint64_t* results;
    int count;
    long tasks, handed, units; /* total number of tasks; number handed out so far; work units of an average task */
    uint64_t sum;
} Farm;

/* Returns a task with between a tenth and two times the average cost, in an irregular order. */
static Task task_of(const Farm* f, long number) {
    uint64_t mixed = ((uint64_t)number + 1) * 0x9e3779b97f4a7c15u;
    Task task = {number, f->units / 10 + (long)((mixed >> 40) % (uint64_t)(f->units * 18 / 10 + 1))};
    return task;
}

static uint64_t perform(Task task) {
    uint64_t x = (uint64_t)task.number;
    bench_compute(task.units);
    for (int i = 0; i < 8; ++i) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + (uint64_t)task.units;
    return x;
}

static void work(MPI_Comm comm) {
    for (;;) {
        Task task;
        MPI_Recv(&task, 2, MPI_LONG, 0, kTaskTag, comm, MPI_STATUS_IGNORE);
        if (task.number == kLeave) return;
        uint64_t result = perform(task);
        MPI_Send(&result, 1, MPI_UINT64_T, 0, kResultTag, comm);
    }
}

static void hand_out(Farm* f, int i) {
    if (f->handed == f->tasks) return;
    Task task = task_of(f, f->handed++);
    MPI_Irecv(&f->results[i], 1, MPI_UINT64_T, f->workers[i].rank, kResultTag, f->workers[i].comm, &f->requests[i]);
    MPI_Send(&task, 2, MPI_LONG, f->workers[i].rank, kTaskTag, f->workers[i].comm);
}

static void add_worker(Farm* f, MPI_Comm comm, int rank) {
    int i = f->count++;
    f->workers[i] = (Worker){comm, rank};
    f->requests[i] = MPI_REQUEST_NULL;
    hand_out(f, i);
}

static void spawn(const Farm* f, int count, MPI_Comm* comm) {
    MPI_Comm_spawn(f->argv[0], f->argv + 1, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, comm, MPI_ERRCODES_IGNORE);
}

enum Way { kStatic, kSpawned, kGrown };

/* Adds workers until there are `wanted`. With kGrown each call adds one, while the earlier workers work. */
static void hire(Farm* f, enum Way way, int wanted) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (way == kGrown) {
        spawn(f, 1, &comm);
        add_worker(f, comm, 0);
        return;
    }
    if (way == kSpawned) spawn(f, wanted, &comm);
    for (int i = 0; i < wanted; ++i) add_worker(f, comm, way == kSpawned ? i : i + 1);
}

static void dismiss(Farm* f, enum Way way, int leave) {
    Task last = {kLeave, 0};
    for (int i = 0; i < f->count && (leave || way != kStatic); ++i) {
        MPI_Send(&last, 2, MPI_LONG, f->workers[i].rank, kTaskTag, f->workers[i].comm);
    }
    if (way == kSpawned) MPI_Comm_disconnect(&f->workers[0].comm);
    for (int i = 0; i < f->count && way == kGrown; ++i) MPI_Comm_disconnect(&f->workers[i].comm);
}

/* Returns the seconds from the first task to the last result. With `leave`, kLeave is also sent to workers that are members of this job. */
static double run(Farm* f, enum Way way, int wanted, int leave) {
    double before = bench_now();
    long back = 0;
    f->count = 0;
    f->handed = 0;
    f->sum = 0;
    hire(f, way, wanted);
    while (back < f->tasks) {
        int i;
        MPI_Waitany(f->count, f->requests, &i, MPI_STATUS_IGNORE);
        f->sum += f->results[i];
        ++back;
        hand_out(f, i);
        if (f->count < wanted && f->handed < f->tasks) hire(f, way, wanted);
    }
    dismiss(f, way, leave);
    return bench_now() - before;
}

static void measure(Farm* f, Report* report, enum Way way, int wanted, int last) {
    static const char* const kNames[] = {"static", "spawned", "grown"};
    static double times[kMaxRepetitions];
    const Options* o = f->options;
    int repetitions = o->iterations < kMaxRepetitions ? (int)o->iterations : kMaxRepetitions;
    for (int i = -o->warm_up; i < repetitions; ++i) {
        double seconds = run(f, way, wanted, last && i == repetitions - 1);
        if (i >= 0) times[i] = seconds * 1e3;
    }
    if (o->check) {
        uint64_t sum = 0;
        for (long k = 0; k < f->tasks; ++k) sum += perform(task_of(f, k));
        bench_require(sum == f->sum, "the results differ from those of a serial run");
    }
    bench_row(report, kNames[way], f->tasks, bench_stats(times, repetitions));
}

static void farm(const Options* o, char** argv, int size) {
    int wanted = o->children ? o->children : size - 1;
    bench_require(wanted > 0 && (!o->children || size == 1), "start several processes, or one with --spawn K");
    Farm f = {o,
              argv,
              malloc((size_t)wanted * sizeof(Worker)),
              malloc((size_t)wanted * sizeof(MPI_Request)),
              malloc((size_t)wanted * sizeof(uint64_t)),
              0,
              0,
              0,
              0,
              0};
    f.units = bench_units((double)bench_next_of(o->compute, -1));
    Report* report = bench_report("task-farm", "ms", o);
    for (long n = bench_next_of(o->counts, 0); n > 0; n = bench_next_of(o->counts, n)) {
        f.tasks = n;
        int last = bench_next_of(o->counts, n) < 0;
        if (o->children && bench_wanted(o, "spawned")) measure(&f, report, kSpawned, wanted, last);
        if (o->children && bench_wanted(o, "grown")) measure(&f, report, kGrown, wanted, last);
        if (!o->children) measure(&f, report, kStatic, wanted, last);
    }
    char ranks[32];
    snprintf(ranks, sizeof ranks, o->children ? "1+%d" : "%d", o->children ? wanted : size);
    bench_print(report, ranks, 1);
    free(f.workers);
    free(f.requests);
    free(f.results);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.counts = "10,100,1000";
    defaults.compute = "200";
    defaults.iterations = 5;
    defaults.warm_up = 1;
    Options options = bench_options(argc, argv, "task farm; -k tasks, --compute us each, -i farms", defaults);
    MPI_Comm parent;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        work(parent);
        MPI_Comm_disconnect(&parent);
    } else if (rank > 0) {
        work(MPI_COMM_WORLD);
    } else {
        farm(&options, argv, size);
    }
    MPI_Finalize();
    return 0;
}
