// Tests locks: one holder at a time, and every PE gets its turn; test_lock; locks in the heap and in static memory. Also tests the cache
// functions, versions and setup.
#include "check.h"

#include <unistd.h>

static int me, n;
static long static_lock = 0, static_count = 0;

static void test_lock(long* lock, long* count) {
    enum { ROUNDS = 25 };
    *count = 0;
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 == 0)
            while (shmem_test_lock(lock)) {}
        else
            shmem_set_lock(lock);
        const long now = shmem_long_g(count, n - 1);
        shmem_long_p(count, now + 1, n - 1);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    EXPECT_INT(shmem_long_g(count, n - 1), ROUNDS * n);
    shmem_barrier_all();
    if (me == 0) {
        shmem_set_lock(lock);
        EXPECT_INT(shmem_test_lock(lock), 1);
    }
    shmem_barrier_all();
    if (me == n - 1) EXPECT_INT(shmem_test_lock(lock), 1);
    shmem_barrier_all();
    if (me == 0) shmem_clear_lock(lock);
    shmem_barrier_all();
}

/// The holder of a contended lock may call test_lock while the next PE queues for it.
static void test_by_holder(long* lock, long* go) {
    *go = 0;
    shmem_barrier_all();
    for (int round = 1; round <= 100 && n > 2; round++) {
        if (me == 0) shmem_set_lock(lock);
        shmem_barrier_all();
        if (me == 0) {
            usleep(100);  // usually PE 1 queues for the lock meanwhile
            shmem_clear_lock(lock);
        } else if (me == 1) {
            shmem_set_lock(lock);
            shmem_long_atomic_set(go, round, 2);
            for (int i = 0; i < 300; i++) EXPECT_INT(shmem_test_lock(lock), 1);
            shmem_clear_lock(lock);
        } else if (me == 2) {
            shmem_long_wait_until(go, SHMEM_CMP_GE, round);
            for (volatile int wait = round * 97 % 20000; wait > 0; wait--) {}
            shmem_set_lock(lock);
            shmem_clear_lock(lock);
        }
        shmem_barrier_all();
    }
}

static void test_rest(void) {
    int major = 0, minor = 0, flag = 0, level = -1;
    char name[SHMEM_MAX_NAME_LEN] = "";
    shmem_info_get_version(&major, &minor);
    EXPECT_INT(major, SHMEM_MAJOR_VERSION);
    EXPECT_INT(minor, SHMEM_MINOR_VERSION);
    shmem_info_get_name(name);
    CHECK(strncmp(name, SHMEM_VENDOR_STRING, strlen(SHMEM_VENDOR_STRING)) == 0, "the name is %s", name);
    shmem_query_thread(&level);
    EXPECT_INT(level, SHMEM_THREAD_SERIALIZED);
    shmem_query_initialized(&flag);
    EXPECT_INT(flag, 1);
    shmem_query_finalized(&flag);
    EXPECT_INT(flag, 0);
    EXPECT_INT(_my_pe(), me);
    EXPECT_INT(_num_pes(), n);
    shmem_set_cache_inv();
    shmem_set_cache_line_inv(&static_count);
    shmem_clear_cache_inv();
    shmem_clear_cache_line_inv(&static_count);
    shmem_udcflush();
    shmem_udcflush_line(&static_count);
    shmem_pcontrol(1, "nothing");
    shmem_fence();
    shmem_quiet();
}

int main(void) {
    int provided = -1, flag = 1;
    shmem_query_initialized(&flag);
    EXPECT_INT(flag, 0);
    EXPECT_INT(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided), 0);
    EXPECT_INT(provided, SHMEM_THREAD_SERIALIZED);
    me = shmem_my_pe();
    n = shmem_n_pes();
    long* heap = shmem_calloc(2, sizeof *heap);
    test_lock(&heap[0], &heap[1]);
    test_lock(&static_lock, &static_count);
    test_by_holder(&heap[0], &heap[1]);
    test_rest();
    shmem_finalize();
    shmem_query_finalized(&flag);
    EXPECT_INT(flag, 1);
    // OpenSHMEM 1.6 allows a second initialization.
    shmem_init();
    EXPECT_INT(shmem_my_pe(), me);
    heap = shmem_calloc(2, sizeof *heap);
    test_lock(&heap[0], &heap[1]);
    shmem_finalize();
    return 0;
}
