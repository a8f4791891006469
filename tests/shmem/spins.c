// A PE that polls its memory in a loop, without a waiting call, must still carry out other PEs' accesses. With threads before shmem_init
// (TEST_THREAD) the owner itself updates its static variables.
#include "check.h"
#include "private.h"

static long count, other;
static uint64_t signal_word;
static int me, n;

// Each PE increments the next PE's variable, which its owner updates, and polls until its own is incremented.
#define SPIN(what, condition)                        \
    do {                                             \
        count = 0, other = 1, signal_word = 0;       \
        shmem_barrier_all();                         \
        shmem_long_atomic_inc(&count, (me + 1) % n); \
        while (condition)                            \
            ;                                        \
        EXPECT_INT(count, 1);                        \
        shmem_barrier_all();                         \
    } while (0)

static void signals(void) {
    static long data[4];
    const long source[4] = {1, 2, 3, 4};
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++) shmem_long_put_signal(data, source, 4, &signal_word, 1, SHMEM_SIGNAL_ADD, pe);
    while (shmem_signal_fetch(&signal_word) != (uint64_t)n) shmem_uint64_wait_until(&signal_word, SHMEM_CMP_GE, 0);
    for (int i = 0; i < 4; i++) EXPECT_INT(data[i], i + 1);
    shmem_barrier_all();
}

int main(void) {
    const int private = keep_variables_private();
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    if (n > 1 && private) CHECK(!shmem_ptr(&count, (me + 1) % n), "the variable is mapped although it must be private");
    long seen, *heap = shmem_calloc(1, sizeof *heap);
    signals();
    SPIN("fetch", shmem_long_atomic_fetch(&count, me) != 1);
    SPIN("g", shmem_long_g(&count, me) != 1);
    SPIN("fetch-add", shmem_long_atomic_fetch_add(&count, 0, me) != 1);
    SPIN("compare-swap", shmem_long_atomic_compare_swap(&count, 2, 2, me) != 1);
    SPIN("test that holds", shmem_long_test(&count, SHMEM_CMP_NE, 1));
    SPIN("wait that holds", (shmem_long_wait_until(&other, SHMEM_CMP_EQ, 1), *(volatile long*)&count != 1));
    SPIN("test of another", (shmem_long_test(&other, SHMEM_CMP_EQ, 1), *(volatile long*)&count != 1));
    SPIN("fetch from the heap", (shmem_long_atomic_fetch(heap, me), *(volatile long*)&count != 1));
    SPIN("get from a neighbour", (shmem_long_g(heap, (me + 1) % n), *(volatile long*)&count != 1));
    SPIN("iget from a neighbour", (shmem_long_iget(&seen, heap, 1, 1, 1, (me + 1) % n), *(volatile long*)&count != 1));
    shmem_finalize();
    return 0;
}
