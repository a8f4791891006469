// Cost of OpenSHMEM's small operations: a plain OpenSHMEM 1.4 program, for any library.
//     oshrun -n 2 operations        put + quiet, get, fetch-add between PEs 0 and 1 (8 bytes; 64 KB to 1 MB), barriers, reductions, µs
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) { return *(const double*)a < *(const double*)b ? -1 : 1; }

// Prints the median of ROUNDS rounds, each the mean of `count` calls, in µs.
#define MEASURE(what, count, who, call)                                               \
    do {                                                                              \
        enum { ROUNDS = 21 };                                                         \
        double each[ROUNDS];                                                          \
        shmem_barrier_all();                                                          \
        for (int r = 0; r < ROUNDS; r++) {                                            \
            const double begin = now();                                               \
            if (who)                                                                  \
                for (int i = 0; i < (count); i++) call;                               \
            each[r] = (now() - begin) / (count);                                      \
        }                                                                             \
        qsort(each, ROUNDS, sizeof *each, compare);                                   \
        if (me == 0) printf("%-28s %9.3f\n", what, each[ROUNDS / 2]), fflush(stdout); \
        shmem_barrier_all();                                                          \
    } while (0)

static long psync[4096], pwrk[8192];

int main(void) {
    const double begin = now();
    shmem_init();
    const double started = now() - begin;
    const int me = shmem_my_pe(), n = shmem_n_pes(), there = n > 1;
    if (me == 0) printf("%-28s %9.0f\n", "shmem_init", started);
    for (int i = 0; i < 4096; i++) psync[i] = SHMEM_SYNC_VALUE;
    long* word = shmem_malloc(4096);
    char* large = shmem_malloc(1 << 20);
    char* local = malloc(1 << 20);
    memset(local, 1, 1 << 20);
    memset(word, 0, 4096);
    memset(large, 0, 1 << 20);
    const int few = getenv("FEW") != NULL;
    const int many = few ? 500 : 20000;
    MEASURE("put 8 B + quiet", many, me == 0, (shmem_long_put(word, (long*)local, 1, there), shmem_quiet()));
    MEASURE("p + quiet", many, me == 0, (shmem_long_p(word, i, there), shmem_quiet()));
    MEASURE("put 8 B", many, me == 0, shmem_long_put(word, (long*)local, 1, there));
    MEASURE("get 8 B", many, me == 0, shmem_long_get((long*)local, word, 1, there));
    MEASURE("fetch-add", many, me == 0, shmem_long_atomic_fetch_add(word, 1, there));
    MEASURE("add + quiet", many, me == 0, (shmem_long_atomic_add(word, 1, there), shmem_quiet()));
    MEASURE("compare-swap", many, me == 0, shmem_long_atomic_compare_swap(word, 1, 1, there));
    for (int kb = 64; kb <= 1024; kb *= 2) {
        const size_t bytes = (size_t)kb * 1024;
        const int transfers = few ? 5 : 100 * 1024 / kb;
        char put[32], get[32];
        snprintf(put, sizeof put, "put %d KB + quiet", kb);
        snprintf(get, sizeof get, "get %d KB", kb);
        MEASURE(put, transfers, me == 0, (shmem_putmem(large, local, bytes, there), shmem_quiet()));
        MEASURE(get, transfers, me == 0, shmem_getmem(local, large, bytes, there));
    }
    MEASURE("barrier", few ? 200 : 5000, 1, shmem_barrier_all());
    MEASURE("sum of 8 B", few ? 200 : 5000, 1, shmem_long_sum_to_all(word + 8, word, 1, 0, 0, n, pwrk, psync + 1024 * (i % 2)));
    MEASURE("sum of 32 KB", few ? 20 : 500, 1,
            shmem_long_sum_to_all((long*)large + 8192, (long*)large, 4096, 0, 0, n, pwrk, psync + 1024 * (i % 2)));
    fflush(stdout);
    shmem_finalize();
    return 0;
}
