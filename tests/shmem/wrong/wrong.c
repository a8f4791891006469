// Erroneous programs; the first argument selects the error. Each case must end with a message that names PE, function and error; otherwise
// the program would continue.
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
    if (is(what, "freed")) {  // this error is detected with STARLING_CHECK
        long* gone = shmem_malloc(64);
        shmem_free(gone);
        shmem_long_p(gone, 1, (me + 1) % n);
    }
    if (is(what, "overrun")) shmem_long_p(heap + 8, 1, (me + 1) % n);  // this error is detected with STARLING_CHECK
    if (is(what, "free-twice")) {
        long* gone = shmem_malloc(64);
        shmem_free(gone);
        shmem_free(gone);
    }
    if (is(what, "free-inside")) shmem_free(heap + 1);
    free(own);
}

// Errors that are detected only with STARLING_CHECK.
static void checked(const char* what, long* heap, int me, int n) {
    long local = 1, *gone = shmem_malloc(64);
    shmem_free(gone);
    if (is(what, "wait-stack")) shmem_long_wait_until(&local, SHMEM_CMP_EQ, 1);
    if (is(what, "test-freed")) shmem_long_test_any(gone, 2, NULL, SHMEM_CMP_EQ, 1);
    if (is(what, "get-freed")) shmem_long_g(gone, (me + 1) % n);
    if (is(what, "atomic-freed")) shmem_long_atomic_fetch_add(gone, 1, (me + 1) % n);
    if (is(what, "strided-freed")) shmem_long_iput(gone, heap, 1, 1, 2, (me + 1) % n);
    if (is(what, "signal-freed")) shmem_putmem_signal(heap, heap + 1, 8, (uint64_t*)gone, 1, SHMEM_SIGNAL_SET, (me + 1) % n);
    if (is(what, "lock-freed")) shmem_set_lock(gone);
    if (is(what, "own-freed")) shmem_long_p(gone, 1, me);
    if (is(what, "reduce-stack")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &local, heap, 1);
    if (is(what, "reduce-source")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, &local, 1);
    if (is(what, "alltoall-overrun")) shmem_long_alltoall(SHMEM_TEAM_WORLD, heap, heap + 1, 7);
    if (is(what, "unequal-root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 1, me);
    if (is(what, "unequal-collect")) shmem_long_fcollect(SHMEM_TEAM_WORLD, heap, heap, (size_t)me + 1);
    if (is(what, "unequal-align")) shmem_align((size_t)64 << me, 64);
    if (is(what, "unequal-calloc")) shmem_calloc((size_t)me + 1, 8);
    if (is(what, "unequal-realloc")) shmem_realloc(heap, (size_t)(me + 1) * 8);
    shmem_team_t team, other;
    if (is(what, "unequal-split")) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1 - 2 * me, 1, NULL, 0, &team);
    if (is(what, "unequal-split-2d")) shmem_team_split_2d(SHMEM_TEAM_WORLD, me + 1, NULL, 0, &team, NULL, 0, &other);
    if (is(what, "unequal-free")) {
        long* one = shmem_malloc(64);
        shmem_free(me == 0 ? heap : one);
    }
}

static void calls(const char* what, long* heap, int me, int n) {
    if (is(what, "root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 1, n);
    if (is(what, "unequal-malloc")) shmem_malloc((size_t)(me + 1) * 1000);                                // needs STARLING_CHECK
    if (is(what, "unequal-reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap, (size_t)me + 1);  // needs STARLING_CHECK
    if (is(what, "comparison")) shmem_long_wait_until(heap, 17, 1);
    if (is(what, "signal-operation")) shmem_putmem_signal(heap, heap, 8, (uint64_t*)heap, 1, 5, 0);
    if (is(what, "context")) shmem_ctx_long_p(SHMEM_CTX_INVALID, heap, 1, 0);
    if (is(what, "world-destroyed")) shmem_team_destroy(SHMEM_TEAM_WORLD);
    if (is(what, "clear-lock")) shmem_clear_lock(heap + me);
    if (is(what, "twice")) shmem_init();
    if (is(what, "active-set")) shmem_barrier(0, 1, n, heap);
    if (is(what, "stride")) shmem_long_iput(heap, heap, 0, 1, 2, 0);
    if (is(what, "exhausted") && shmem_malloc((size_t)1 << 50) != NULL) shmem_global_exit(9);
    if (is(what, "exhausted-one")) {  // the last PE's host has no memory: the call fails on all PEs
        if (me == n - 1) setrlimit(RLIMIT_FSIZE, &(struct rlimit){4 << 20, 4 << 20});
        char* most = shmem_malloc(1 << 20);
        if (!most || shmem_malloc((size_t)64 << 20) != NULL || shmem_realloc(most, (size_t)64 << 20) != NULL)
            shmem_global_exit(9);
        long* some = shmem_calloc(100000, sizeof *some);
        if (!some || shmem_addr_accessible((char*)some + ((size_t)32 << 20), 0)) shmem_global_exit(10);
        shmem_long_p(some + me, me + 1, (me + 1) % n);
        shmem_barrier_all();
        if (some[(me + n - 1) % n] != (me + n - 1) % n + 1 || some[99999] != 0) shmem_global_exit(11);
    }
}

// The last PE dies while the others wait for it or access its memory: the others must end too.
static void dies(const char* what, long* heap, int me, int n) {
    if (strncmp(what, "dies-", 5) != 0) return;
    shmem_long_p(heap, 1, (me + 1) % n);
    shmem_barrier_all();
    if (me == n - 1) raise(SIGKILL);
    if (is(what, "dies-barrier")) shmem_barrier_all();
    if (is(what, "dies-wait")) shmem_long_wait_until(heap, SHMEM_CMP_EQ, 77);
    if (is(what, "dies-lock"))
        shmem_set_lock(heap + n), shmem_set_lock(heap + n + 1), shmem_long_wait_until(heap, SHMEM_CMP_EQ, 77);
    while (is(what, "dies-get")) shmem_long_g(heap, n - 1);
    while (is(what, "dies-atomic")) shmem_long_atomic_inc(heap, n - 1), shmem_quiet();
    while (is(what, "dies-put")) shmem_long_put_nbi(heap, heap + 1, 4, n - 1), shmem_quiet();
    while (is(what, "dies-test")) shmem_long_test_all(heap, 8, NULL, SHMEM_CMP_EQ, 77);
    while (is(what, "dies-test-lock")) shmem_test_lock(heap + n);
    if (is(what, "dies-wait-any")) shmem_long_wait_until_any(heap, 8, NULL, SHMEM_CMP_EQ, 77);
    if (is(what, "dies-signal")) shmem_signal_wait_until((uint64_t*)heap, SHMEM_CMP_EQ, 77);
    if (is(what, "dies-reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap, 4);
    if (is(what, "dies-collect")) shmem_long_collect(SHMEM_TEAM_WORLD, heap + 1, heap, 1);
    if (is(what, "dies-malloc")) shmem_malloc((size_t)8 << 20);
    if (is(what, "dies-sync")) shmem_team_sync(SHMEM_TEAM_WORLD);
    if (is(what, "dies-finalize")) shmem_finalize();
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "nothing";
    before_init(what);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* heap = shmem_calloc(8, sizeof *heap);
    addresses(what, heap, me, n);
    checked(what, heap, me, n);
    calls(what, heap, me, n);
    dies(what, heap, me, n);
    if (is(what, "exit") && me == n - 1) shmem_global_exit(argc > 2 ? atoi(argv[2]) : 0);
    if (is(what, "exit")) shmem_barrier_all(), shmem_barrier_all();
    shmem_barrier_all();
    shmem_finalize();
    if (is(what, "after-finalize")) shmem_quiet();
    printf("went on\n");
    return 0;
}
