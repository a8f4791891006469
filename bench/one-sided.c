/* Puts, gets and updates of another process's memory, each with a flush, in an epoch of MPI_Win_lock_all; the other process waits in a
 * barrier. -o chooses among put, get, accumulate (of longs), accumulate-double, fetch_and_op, compare_and_swap, puts and gets (64 with one
 * flush, time of one) and fence (both take part). Each runs on a window of MPI_Win_allocate; with the prefix "create-" on one of
 * MPI_Win_create over memory of malloc, with "exchanged-" over memory of MPI_Alloc_mem. */
#include <stdlib.h>
#include <string.h>

#include "common/bench.h"

typedef struct {
    MPI_Win win;
    char* origin;
    int bytes;
    const char* operation;
} Access;

static void access_once(const Access* a, int target) {
    static long one = 1, zero = 0, old;
    const char* what = a->operation;
    if (strncmp(what, "put", 3) == 0)
        MPI_Put(a->origin, a->bytes, MPI_BYTE, target, 0, a->bytes, MPI_BYTE, a->win);
    else if (strncmp(what, "get", 3) == 0)
        MPI_Get(a->origin, a->bytes, MPI_BYTE, target, 0, a->bytes, MPI_BYTE, a->win);
    else if (strcmp(what, "accumulate-double") == 0)
        MPI_Accumulate(a->origin, a->bytes / 8, MPI_DOUBLE, target, 0, a->bytes / 8, MPI_DOUBLE, MPI_SUM, a->win);
    else if (strcmp(what, "accumulate") == 0)
        MPI_Accumulate(a->origin, a->bytes / 8, MPI_LONG, target, 0, a->bytes / 8, MPI_LONG, MPI_SUM, a->win);
    else if (strcmp(what, "fetch_and_op") == 0)
        MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, a->win);
    else
        MPI_Compare_and_swap(&one, &zero, &old, MPI_LONG, target, 0, a->win);
}

enum { kRow = 64 };
static int is_in_a_row(const char* name) { return strcmp(name, "puts") == 0 || strcmp(name, "gets") == 0; }

static double passive(const Pair* pair, long iterations, void* context) {
    const Access* a = context;
    const int row = is_in_a_row(a->operation) ? kRow : 1;
    if (pair->role == 0) {
        for (long i = 0; i < iterations; ++i) {
            for (int j = 0; j < row; ++j) access_once(a, pair->peer);
            MPI_Win_flush(pair->peer, a->win);
        }
    }
    double before = bench_now();
    MPI_Barrier(pair->comm);
    return bench_now() - before;
}

static double fences(const Pair* pair, long iterations, void* context) {
    const Access* a = context;
    (void)pair;
    for (long i = 0; i < iterations; ++i) MPI_Win_fence(0, a->win);
    return 0;
}

static int is_of_one_element(const char* name) {
    return strcmp(name, "fetch_and_op") == 0 || strcmp(name, "compare_and_swap") == 0;
}

/* Measures all sizes of one operation, on one window. */
static void measure(Report* report, const Pair* pair, const Options* options, Access* a, const char* label) {
    const int fence = strcmp(a->operation, "fence") == 0;
    const double scale = is_in_a_row(a->operation) ? 1e6 / kRow : 1e6;
    if (!fence) MPI_Win_lock_all(0, a->win);
    for (long bytes = bench_next_size(options, -1); bytes >= 0; bytes = bench_next_size(options, bytes)) {
        if (strncmp(a->operation, "accumulate", 10) == 0 && (bytes == 0 || bytes % 8 != 0)) continue;
        if (is_of_one_element(a->operation) && bytes != 8) continue;
        if (fence && bytes != 8) continue;
        a->bytes = (int)bytes;
        bench_row(report, label, bytes, bench_pair_measure(pair, options, fence ? fences : passive, a, scale));
    }
    if (!fence) MPI_Win_unlock_all(a->win);
}

/* Checks that a get returns the data of the last put. */
static void verify(const Pair* pair, const Access* a, size_t bytes) {
    MPI_Win_fence(0, a->win);
    if (pair->role == 0) {
        bench_fill(a->origin, bytes, 5);
        MPI_Put(a->origin, (int)bytes, MPI_BYTE, pair->peer, 0, (int)bytes, MPI_BYTE, a->win);
    }
    MPI_Win_fence(0, a->win);
    if (pair->role == 0) {
        memset(a->origin, 0, bytes);
        MPI_Get(a->origin, (int)bytes, MPI_BYTE, pair->peer, 0, (int)bytes, MPI_BYTE, a->win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win);
    if (pair->role == 0) bench_verify(a->origin, bytes, 5, "one-sided");
}

enum Memory { kAllocated, kCreated, kExchanged, kKinds };
static const char* const kPrefixes[] = {"", "create-", "exchanged-"};

static MPI_Win window_over(enum Memory kind, size_t bytes, MPI_Comm comm, char** memory) {
    MPI_Win win;
    if (kind == kAllocated) {
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, comm, memory, &win);
    } else {
        if (kind == kCreated)
            *memory = bench_buffer(bytes);
        else
            MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, memory);
        MPI_Win_create(*memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, comm, &win);
    }
    memset(*memory, 0, bytes);
    return win;
}

static void measure_all(Report* report, const Pair* pair, const Options* options, enum Memory kind, size_t bytes) {
    static const char* const kOperations[] = {
        "put", "get", "accumulate", "accumulate-double", "fetch_and_op", "compare_and_swap", "puts", "gets", "fence"};
    char* memory;
    Access a = {window_over(kind, bytes, pair->comm, &memory), bench_buffer(bytes), 0, NULL};
    memset(a.origin, 0, bytes);
    MPI_Barrier(pair->comm);
    for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; ++i) {
        char label[40];
        strcpy(label, kPrefixes[kind]);
        strcat(label, kOperations[i]);
        if (!bench_wanted(options, label)) continue;
        a.operation = kOperations[i];
        measure(report, pair, options, &a, label);
    }
    if (options->check) verify(pair, &a, bytes);
    MPI_Win_free(&a.win);
    if (kind == kCreated) free(memory);
    if (kind == kExchanged) MPI_Free_mem(memory);
    free(a.origin);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options = bench_options(argc, argv, "one-sided communication between two processes", bench_defaults());
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("one-sided", "us", &options);
    const size_t bytes = options.max_bytes < 8 ? 8 : options.max_bytes;
    for (int kind = 0; kind < kKinds; ++kind) measure_all(report, &pair, &options, (enum Memory)kind, bytes);
    bench_print(report, "2", pair.role == 0);
    bench_pair_end(&pair);
    MPI_Finalize();
    return 0;
}
