/* Access to another process's memory while that process computes, and while it waits in a barrier: time per operation, with its flush or
 * unlock. -o chooses among get, put, fetch_and_op and lock (an exclusive lock, a put of the size and the unlock), each followed by "-waits"
 * or "-computes". The other process computes for longer than a batch takes, without MPI calls. */
#include <stdlib.h>
#include <string.h>

#include "common/bench.h"

enum { kBatchMicroseconds = 100000 };

typedef struct {
    MPI_Win win;
    char* origin;
    int bytes;
} Access;

static void get(const Access* a, int target) {
    MPI_Get(a->origin, a->bytes, MPI_BYTE, target, 0, a->bytes, MPI_BYTE, a->win);
    MPI_Win_flush(target, a->win);
}

static void put(const Access* a, int target) {
    MPI_Put(a->origin, a->bytes, MPI_BYTE, target, 0, a->bytes, MPI_BYTE, a->win);
    MPI_Win_flush(target, a->win);
}

static void fetch_and_op(const Access* a, int target) {
    static long one = 1, old;
    MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, a->win);
    MPI_Win_flush(target, a->win);
}

static void lock(const Access* a, int target) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, a->win);
    MPI_Put(a->origin, a->bytes, MPI_BYTE, target, 0, a->bytes, MPI_BYTE, a->win);
    MPI_Win_unlock(target, a->win);
}

static const struct {
    const char* name;
    void (*once)(const Access*, int);
    int locks, of_one_element;
} kOperations[] = {{"get", get, 0, 0}, {"put", put, 0, 0}, {"fetch_and_op", fetch_and_op, 0, 1}, {"lock", lock, 1, 0}};

/* Returns the microseconds per operation of one batch; both sides call it. */
static double batch(const Pair* pair, const Access* a, size_t which, long computes) {
    double each = 0;
    MPI_Barrier(pair->comm);
    if (pair->role == 1) bench_compute(computes);
    if (pair->role == 0) {
        double begin = bench_now(), now = begin;
        if (!kOperations[which].locks) MPI_Win_lock(MPI_LOCK_SHARED, pair->peer, 0, a->win);
        long done = 0;
        /* If the other process makes no progress, the first operation alone takes longer than this. */
        while ((now - begin) * 1e6 < 0.5 * kBatchMicroseconds) {
            kOperations[which].once(a, pair->peer);
            ++done;
            now = bench_now();
        }
        each = (now - begin) * 1e6 / (double)done;
        if (!kOperations[which].locks) MPI_Win_unlock(pair->peer, a->win);
    }
    MPI_Barrier(pair->comm);
    return each;
}

static void measure(Report* report, const Pair* pair, const Options* options, Access* a, size_t which, long units) {
    for (int computes = 0; computes < 2; ++computes) {
        char label[40];
        strcpy(label, kOperations[which].name);
        strcat(label, computes ? "-computes" : "-waits");
        if (!bench_wanted(options, label)) continue;
        for (long bytes = bench_next_size(options, -1); bytes >= 0; bytes = bench_next_size(options, bytes)) {
            if (bytes == 0 || (kOperations[which].of_one_element && bytes != 8)) continue;
            double values[kMaxTurns];
            a->bytes = (int)bytes;
            const int batches = options->batches < kMaxTurns ? options->batches : kMaxTurns;
            for (int i = 0; i < batches; ++i) values[i] = batch(pair, a, which, computes ? units : 0);
            bench_row(report, label, bytes, bench_stats(values, batches));
        }
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.batches = 5;
    Options options = bench_options(argc, argv, "one-sided communication with a computing process", defaults);
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("one-sided-busy", "us", &options);
    const size_t bytes = options.max_bytes < 8 ? 8 : options.max_bytes;
    char* memory;
    Access a = {MPI_WIN_NULL, bench_buffer(bytes), 0};
    memset(a.origin, 0, bytes);
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, pair.comm, &memory, &a.win);
    memset(memory, 0, bytes);
    const long units = bench_units(kBatchMicroseconds);
    for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; ++i) measure(report, &pair, &options, &a, i, units);
    MPI_Win_free(&a.win);
    bench_print(report, "2", pair.role == 0);
    bench_pair_end(&pair);
    free(a.origin);
    MPI_Finalize();
    return 0;
}
