// Tests static and global variables. A neighbor's put arrives while the owner computes without calls, whatever its size. Variables keep
// their contents from before shmem_init. A forked child has its own copies.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "private.h"

enum { kMany = 3 << 20 };

static int me, n, next, private;
static uint64_t signal_word;
static int begun[1000] = {7, 8, 9}, untouched[kMany], *const global_begun = &begun[2];
static int number = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }

// Passes a value around the ring: the PE that has it sends it on, all others only poll their variable.
#define ROUND(T, value, pass)        \
    do {                             \
        static volatile T variable;  \
        const T sent = (T)(value);   \
        T* there = (T*)&variable;    \
        variable = 0;                \
        shmem_barrier_all();         \
        if (me != 0)                 \
            while (variable != sent) \
                ;                    \
        pass;                        \
        shmem_quiet();               \
        while (variable != sent)     \
            ;                        \
        shmem_barrier_all();         \
    } while (0)

static void test_arrival(void) {
    ROUND(signed char, -3, shmem_schar_p(there, sent, next));
    ROUND(short, -300, shmem_short_p(there, sent, next));
    ROUND(int, -70000, shmem_int_p(there, sent, next));
    ROUND(long, -(1l << 40), shmem_long_p(there, sent, next));
    ROUND(float, 1.5f, shmem_float_p(there, sent, next));
    ROUND(double, 1.5, shmem_double_p(there, sent, next));
    ROUND(char, 3, shmem_put8(there, &sent, 1, next));
    ROUND(short, 300, shmem_put16(there, &sent, 1, next));
    ROUND(int, 70000, shmem_put32(there, &sent, 1, next));
    ROUND(long, 1l << 40, shmem_put64_nbi(there, &sent, 1, next));
    ROUND(int, 5, shmem_int_iput(there, &sent, 1, 1, 1, next));
    ROUND(int, 6, shmem_int_atomic_set(there, sent, next));
    ROUND(int, 7, shmem_int_atomic_add(there, sent, next));
    ROUND(int, 8, EXPECT_INT(shmem_int_atomic_swap(there, sent, next), 0));
    ROUND(int, 9, shmem_int_p(there, sent + shmem_int_g(there, next), next));
    ROUND(int, 10, shmem_int_put_signal(there, &sent, 1, &signal_word, 1, SHMEM_SIGNAL_SET, next));
    EXPECT_INT(signal_word, 1);
}

static void test_signal(void) {
    volatile uint64_t* looked_at = &signal_word;
    static int data;
    signal_word = 0;
    shmem_barrier_all();
    if (me != 0)
        while (*looked_at != 5)
            ;
    const int mine = me + 1;
    shmem_int_put_signal(&data, &mine, 1, &signal_word, 5, SHMEM_SIGNAL_ADD, next);
    shmem_quiet();
    while (*looked_at != 5)
        ;
    EXPECT_INT(data, (me + n - 1) % n + 1);
    shmem_barrier_all();
}

// A put must wake a PE that waits in the library.
static void test_waiting(void) {
    static int flag;
    for (int i = 1; i <= 100; i++) {
        if (me != 0) shmem_int_wait_until(&flag, SHMEM_CMP_EQ, i);
        shmem_int_p(&flag, i, next);
        shmem_quiet();
        if (me == 0) shmem_int_wait_until(&flag, SHMEM_CMP_EQ, i);
    }
    shmem_barrier_all();
}

static void test_contents(void) {
    EXPECT_INT(begun[0], 7);
    EXPECT_INT(begun[1], 8);
    EXPECT_INT(*global_begun, 9);
    EXPECT_INT(begun[999], 0);
    EXPECT_INT(untouched[kMany / 2], 11);
    EXPECT_INT(untouched[kMany / 2 + 1], 0);
    EXPECT_INT(untouched[kMany - 1], 0);
    int* there = shmem_ptr(&begun[500], next);
    CHECK(there || private, "PE %d is on this host", next);
    if (there)
        *there = me + 1;
    else
        shmem_int_p(&begun[500], me + 1, next);
    shmem_barrier_all();
    EXPECT_INT(begun[500], (me + n - 1) % n + 1);
}

// The parent must not see the child's changes, nor the child the parent's.
static void test_fork(void) {
    int changed[2];
    EXPECT_INT(pipe(changed), 0);
    shmem_barrier_all();
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        const int read_at_all = (int)read(changed[0], &byte, 1);
        const int seen = number + untouched[kMany / 2];
        number = 100, untouched[0] = 100;
        _exit(read_at_all == 1 ? seen : 99);
    }
    CHECK(child > 0, "there is no child");
    shmem_barrier_all();
    shmem_int_p(&number, 2, next);
    shmem_barrier_all();
    EXPECT_INT(number, 2);
    untouched[kMany / 2] = 50;
    EXPECT_INT(write(changed[1], "", 1), 1);
    int status;
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 12);
    EXPECT_INT(number, 2);
    EXPECT_INT(untouched[0], 0);
    EXPECT_INT(pthread_mutex_trylock(&mutex), 0);
    pthread_mutex_unlock(&mutex);
    shmem_barrier_all();
}

int main(void) {
    EXPECT_INT(pthread_atfork(lock, unlock, unlock), 0);
    untouched[kMany / 2] = 11;
    if (getenv("TEST_CLOSED")) EXPECT_INT(prctl(PR_SET_DUMPABLE, 0), 0);  // forbids other processes to access this one
    private = keep_variables_private();
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
    test_contents();
    if (!private) {
        test_arrival();
        test_signal();
    }
    test_waiting();
    test_fork();
    shmem_finalize();
    shmem_init();
    test_waiting();
    shmem_finalize();
    return 0;
}
