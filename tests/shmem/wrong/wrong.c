// What is wrong with a program: the first argument says what. Each case ends with a sentence that names PE, function and fault, or would go on.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is(const char* what, const char* name) { return strcmp(what, name) == 0; }

static void before_init(const char* what) {
    if (is(what, "before-init")) shmem_barrier_all();
    if (is(what, "put-before-init")) {
        static long word;
        shmem_long_p(&word, 1, 0);
    }
}

static void addresses(const char* what, long* heap, int me, int n) {
    long local = 0, *own = malloc(64);
    if (is(what, "stack")) shmem_long_p(&local, 1, (me + 1) % n);
    if (is(what, "malloc")) shmem_long_g(own, (me + 1) % n);
    if (is(what, "beyond")) shmem_long_p(heap + (1 << 20), 1, (me + 1) % n);
    if (is(what, "pe")) shmem_long_p(heap, 1, n);
    if (is(what, "negative-pe")) shmem_long_atomic_inc(heap, -1);
    if (is(what, "freed")) {  // seen with STARLING_CHECK
        long* gone = shmem_malloc(64);
        shmem_free(gone);
        shmem_long_p(gone, 1, (me + 1) % n);
    }
    if (is(what, "overrun")) shmem_long_p(heap + 8, 1, (me + 1) % n);  // seen with STARLING_CHECK
    if (is(what, "free-twice")) {
        long* gone = shmem_malloc(64);
        shmem_free(gone);
        shmem_free(gone);
    }
    if (is(what, "free-inside")) shmem_free(heap + 1);
    free(own);
}

static void calls(const char* what, long* heap, int me, int n) {
    if (is(what, "root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 1, n);
    if (is(what, "unequal-malloc")) shmem_malloc((size_t)(me + 1) * 1000);                                // with STARLING_CHECK
    if (is(what, "unequal-reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap, (size_t)me + 1);  // with STARLING_CHECK
    if (is(what, "comparison")) shmem_long_wait_until(heap, 17, 1);
    if (is(what, "signal-operation")) shmem_putmem_signal(heap, heap, 8, (uint64_t*)heap, 1, 5, 0);
    if (is(what, "context")) shmem_ctx_long_p(SHMEM_CTX_INVALID, heap, 1, 0);
    if (is(what, "world-destroyed")) shmem_team_destroy(SHMEM_TEAM_WORLD);
    if (is(what, "clear-lock")) shmem_clear_lock(heap + me);
    if (is(what, "twice")) shmem_init();
    if (is(what, "active-set")) shmem_barrier(0, 1, n, heap);
    if (is(what, "stride")) shmem_long_iput(heap, heap, 0, 1, 2, 0);
    if (is(what, "exhausted") && shmem_malloc((size_t)1 << 50) != NULL) shmem_global_exit(9);
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "nothing";
    before_init(what);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* heap = shmem_calloc(8, sizeof *heap);
    addresses(what, heap, me, n);
    calls(what, heap, me, n);
    if (is(what, "exit") && me == n - 1) shmem_global_exit(argc > 2 ? atoi(argv[2]) : 0);
    if (is(what, "exit")) shmem_barrier_all(), shmem_barrier_all();
    shmem_barrier_all();
    shmem_finalize();
    if (is(what, "after-finalize")) shmem_quiet();
    printf("went on\n");
    return 0;
}
