// Share of non-blocking puts that is hidden by computation: PE 0 puts blocks to PE 1 and waits for them. It then computes for as long as
// that took, and at last does both, computing between the puts and shmem_quiet. Overlap is 100 % when both together take as long as the
// computation, 0 % when they take the sum. PE 1 waits.
//     oshrun -n 2 overlap [bytes of a block]...
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 21, BLOCKS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static volatile double sink;

static void compute(long units) {
    double x = 1;
    for (long i = 0; i < units; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

static int compare(const void* a, const void* b) { return *(const double*)a < *(const double*)b ? -1 : 1; }

// Returns the median time of `blocks` puts and `units` of computation; either may be 0.
static double measure(char* there, const char* here, size_t bytes, int blocks, long units) {
    double each[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        const double begin = now();
        for (int i = 0; i < blocks; i++) shmem_putmem_nbi(there + (size_t)i * bytes, here, bytes, 1);
        compute(units);
        shmem_quiet();
        each[r] = now() - begin;
    }
    qsort(each, ROUNDS, sizeof *each, compare);
    return each[ROUNDS / 2];
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe();
    for (int i = 1; i < (argc > 1 ? argc : 2); i++) {
        const size_t bytes = argc > 1 ? (size_t)atol(argv[i]) : 65536;
        char *there = shmem_malloc(bytes * BLOCKS), *here = malloc(bytes);
        memset(here, 1, bytes);
        memset(there, 0, bytes * BLOCKS);
        shmem_barrier_all();
        if (me == 0) {
            measure(there, here, bytes, BLOCKS, 0);  // a warm-up opens connections and lets buffers grow
            const double puts = measure(there, here, bytes, BLOCKS, 0), unit = measure(there, here, bytes, 0, 1000000) / 1e6;
            const long units = (long)(puts / unit) + 1;
            const double computed = measure(there, here, bytes, 0, units), both = measure(there, here, bytes, BLOCKS, units);
            printf("%d puts of %zu bytes: %.1f us, computing %.1f, both %.1f: overlap %.0f %%\n", BLOCKS, bytes, puts, computed,
                   both, 100 * (puts + computed - both) / (puts < computed ? puts : computed));
            fflush(stdout);
        }
        shmem_barrier_all();
        shmem_free(there);
        free(here);
    }
    shmem_finalize();
    return 0;
}
