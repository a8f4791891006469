// Stores of a PE to its own memory must be visible to others when its shmem_quiet returns. Two PEs each set their own flag, call
// shmem_quiet, and read the other's flag: at least one must see the other's. Tested with one thread, and with a second thread that also
// calls shmem_quiet.
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static int me, n;
static atomic_int over;

static void meet(long* at, long round) {
    shmem_long_atomic_set(at, round, 1 - me);
    for (int look = 0; look < 2000 && *(volatile long*)at < round; look++) {}
    shmem_long_wait_until(at, SHMEM_CMP_GE, round);
}

static void test(long* memory, int by_store, long rounds, const char* what) {
    long *flag = memory, *seen = memory + 8, *before = memory + 16, *behind = memory + 24;
    memset(memory, 0, 32 * sizeof(long));
    shmem_barrier_all();
    for (long round = 1; round <= rounds && n == 2; round++) {
        meet(before, round);
        for (volatile int wait = (int)(me ? round % 37 : round % 41); wait > 0; wait--) {}
        if (by_store)
            *(volatile long*)flag = round;
        else
            shmem_long_p(flag, round, me);
        shmem_quiet();
        const int mine = shmem_long_g(flag, 1 - me) >= round;
        shmem_long_p(seen, mine, 1 - me);
        shmem_quiet();
        meet(behind, round);
        CHECK(mine || *(volatile long*)seen, "%s: in round %ld neither process saw the other's", what, round);
    }
    shmem_barrier_all();
}

static void* be_quiet(void* unused) {
    while (!over) shmem_quiet();
    return unused;
}

static long* begin(int level) {
    int provided;
    EXPECT_INT(shmem_init_thread(level, &provided), 0);
    me = shmem_my_pe(), n = shmem_n_pes();
    return shmem_malloc(32 * sizeof(long));
}

int main(void) {
    long* memory = begin(SHMEM_THREAD_SINGLE);
    // A round over hosts takes up to 1 ms on a busy machine.
    const long rounds = n == 2 && !shmem_ptr(memory, 1 - me) ? 3000 : 30000;
    test(memory, 0, rounds, "put");
    test(memory, 1, rounds, "store");
    shmem_finalize();
    memory = begin(SHMEM_THREAD_MULTIPLE);
    pthread_t thread;
    EXPECT_INT(pthread_create(&thread, NULL, be_quiet, NULL), 0);
    test(memory, 1, 200, "store beside a thread");
    over = 1;
    pthread_join(thread, NULL);
    shmem_finalize();
    return 0;
}
