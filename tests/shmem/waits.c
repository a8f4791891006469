// Tests waits and tests: each comparison, and all, any and some of several variables that other PEs write, some of them excluded.
#include "check.h"
#include "types.h"

static int me, n, next;

#define COMPARISONS(X) X(EQ, 5) X(NE, 6) X(GT, 8) X(GE, 7) X(LT, 1) X(LE, 2)

// The previous PE writes a value for which the comparison holds; `at` begins with a value for which it does not.
#define TEST(name, T)                                                                                                    \
    static void test_##name(T* at) {                                                                                     \
        static const struct {                                                                                            \
            int cmp;                                                                                                     \
            T first, second, with;                                                                                       \
        } cases[] = {{SHMEM_CMP_EQ, 3, 5, 5}, {SHMEM_CMP_NE, 5, 3, 5}, {SHMEM_CMP_GT, 5, 6, 5},                          \
                     {SHMEM_CMP_GE, 4, 5, 5}, {SHMEM_CMP_LT, 5, 4, 5}, {SHMEM_CMP_LE, 6, 5, 5}};                         \
        for (int c = 0; c < 6; c++) {                                                                                    \
            const int cmp = cases[c].cmp;                                                                                \
            const T with = cases[c].with;                                                                                \
            *at = cases[c].first;                                                                                        \
            EXPECT_INT(shmem_##name##_test(at, cmp, with), 0);                                                           \
            shmem_barrier_all();                                                                                         \
            shmem_##name##_p(at, cases[c].second, next);                                                                 \
            shmem_##name##_wait_until(at, cmp, with);                                                                    \
            EXPECT_INT(shmem_##name##_test(at, cmp, with), 1);                                                           \
            shmem_barrier_all();                                                                                         \
        }                                                                                                                \
        const int left_out[4] = {0, 1, 0, 0};                                                                            \
        T values[4] = {1, 2, 3, 4};                                                                                      \
        size_t indices[4];                                                                                               \
        memset(at, 0, 4 * sizeof(T));                                                                                    \
        EXPECT_INT(shmem_##name##_test_all(at, 4, left_out, SHMEM_CMP_EQ, 9), 0);                                        \
        EXPECT_INT(shmem_##name##_test_all_vector(at, 4, left_out, SHMEM_CMP_EQ, values), 0);                            \
        CHECK(shmem_##name##_test_any(at, 4, left_out, SHMEM_CMP_EQ, 9) == SIZE_MAX, #name ": any of none");             \
        CHECK(shmem_##name##_test_any_vector(at, 4, left_out, SHMEM_CMP_EQ, values) == SIZE_MAX, #name ": any of none"); \
        EXPECT_INT(shmem_##name##_test_some(at, 4, indices, left_out, SHMEM_CMP_EQ, 9), 0);                              \
        EXPECT_INT(shmem_##name##_test_some_vector(at, 4, indices, left_out, SHMEM_CMP_EQ, values), 0);                  \
        shmem_barrier_all();                                                                                             \
        const T nine = 9, three = 3;                                                                                     \
        shmem_##name##_put(&at[2], &nine, 1, next);                                                                      \
        EXPECT_INT(shmem_##name##_wait_until_any(at, 4, left_out, SHMEM_CMP_EQ, 9), 2);                                  \
        EXPECT_INT(shmem_##name##_wait_until_some(at, 4, indices, left_out, SHMEM_CMP_EQ, 9), 1);                        \
        EXPECT_INT(indices[0], 2);                                                                                       \
        EXPECT_INT(shmem_##name##_test_any(at, 4, left_out, SHMEM_CMP_EQ, 9), 2);                                        \
        EXPECT_INT(shmem_##name##_test_some(at, 4, indices, left_out, SHMEM_CMP_EQ, 9), 1);                              \
        shmem_barrier_all();                                                                                             \
        shmem_##name##_p(&at[2], three, next);                                                                           \
        EXPECT_INT(shmem_##name##_wait_until_any_vector(at, 4, NULL, SHMEM_CMP_EQ, values), 2);                          \
        EXPECT_INT(shmem_##name##_wait_until_some_vector(at, 4, indices, left_out, SHMEM_CMP_EQ, values), 1);            \
        EXPECT_INT(shmem_##name##_test_any_vector(at, 4, left_out, SHMEM_CMP_EQ, values), 2);                            \
        EXPECT_INT(shmem_##name##_test_some_vector(at, 4, indices, left_out, SHMEM_CMP_EQ, values), 1);                  \
        EXPECT_INT(indices[0], 2);                                                                                       \
        shmem_barrier_all();                                                                                             \
        for (int i = 0; i < 4; i++)                                                                                      \
            if (i != 1) shmem_##name##_p(&at[i], values[i], next);                                                       \
        shmem_##name##_wait_until_all_vector(at, 4, left_out, SHMEM_CMP_EQ, values);                                     \
        EXPECT_INT(shmem_##name##_test_all_vector(at, 4, left_out, SHMEM_CMP_EQ, values), 1);                            \
        shmem_##name##_wait_until_all(at, 4, left_out, SHMEM_CMP_GE, 1);                                                 \
        EXPECT_INT(shmem_##name##_test_all(at, 4, left_out, SHMEM_CMP_GE, 1), 1);                                        \
        EXPECT_INT(at[1], 0);                                                                                            \
        const int none[4] = {1, 1, 1, 1};                                                                                \
        CHECK(shmem_##name##_wait_until_any(at, 4, none, SHMEM_CMP_EQ, 9) == SIZE_MAX, #name ": any of none");           \
        EXPECT_INT(shmem_##name##_wait_until_some(at, 4, indices, none, SHMEM_CMP_EQ, 9), 0);                            \
        shmem_barrier_all();                                                                                             \
    }
FOR_SYNC(TEST)
#undef TEST

static void test_old(long* at) {
    *at = 0;
    shmem_barrier_all();
    shmem_long_p(at, 1, next);
    (shmem_wait)(at, 0);
    shmem_barrier_all();
    shmem_long_p(at, 2, next);
    (shmem_wait_until)(at, SHMEM_CMP_EQ, 2);
    shmem_barrier_all();
#define TEST(name, T)                    \
    {                                    \
        T* word = (T*)at;                \
        *word = 7;                       \
        shmem_barrier_all();             \
        shmem_##name##_p(word, 8, next); \
        shmem_##name##_wait(word, 7);    \
        EXPECT_INT(*word, 8);            \
        shmem_barrier_all();             \
    }
    FOR_WAIT(TEST)
#undef TEST
}

/// A token passes around the ring while all PEs but one sleep.
static void test_ring(long* token) {
    *token = -1;
    shmem_barrier_all();
    for (long round = 0; round < 20; round++) {
        if (me == 0) shmem_long_p(token, round, next);
        shmem_long_wait_until(token, SHMEM_CMP_EQ, round);
        if (me != 0) shmem_long_p(token, round, next);
    }
    shmem_barrier_all();
}

/// If several variables satisfy the condition, each must be returned in time, although other calls poll other variables in between.
static void test_turns(long* at) {
    long found[3] = {0};
    const int left_out[4] = {0, 1, 0, 0};
    for (int i = 0; i < 4; i++) at[i] = 1;
    shmem_barrier_all();
    for (int i = 0; i < 400; i++) {
        found[0] |= 1 << shmem_long_test_any(at, 4, left_out, SHMEM_CMP_EQ, 1);
        found[1] |= 1 << shmem_long_wait_until_any(at, 4, NULL, SHMEM_CMP_EQ, 1);
        found[2] |= 1 << shmem_long_test_any_vector(at, 4, left_out, SHMEM_CMP_EQ, at);
        EXPECT_INT(shmem_long_test_any(at, 1, NULL, SHMEM_CMP_EQ, 1), 0);
    }
    EXPECT_INT(found[0], 1 + 4 + 8);
    EXPECT_INT(found[1], 1 + 2 + 4 + 8);
    EXPECT_INT(found[2], 1 + 4 + 8);
    shmem_barrier_all();
}

/// A wait for a signal must return the value that satisfied it, even if the signal has changed since.
static void test_signal(uint64_t* signal) {
    uint64_t* over = signal + 1;
    *signal = *over = 0;
    shmem_barrier_all();
    if (me == 1) {
        for (int i = 0; i < 20000; i++) {
            const uint64_t seen = shmem_signal_wait_until(signal, SHMEM_CMP_LT, 500);
            CHECK(seen < 500, "%llu", (unsigned long long)seen);
        }
        shmem_uint64_atomic_set(over, 1, 0);
    } else if (me == 0 && n > 1) {
        while (!shmem_uint64_atomic_fetch(over, 0)) {
            shmem_uint64_atomic_set(signal, 1000, 1);
            shmem_uint64_atomic_set(signal, 100, 1);
        }
    }
    shmem_barrier_all();
}

static long variables[16];

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (me + 1) % n;
    void* heap = shmem_calloc(16, sizeof(long));
#define TEST(name, T) test_##name(heap);
    FOR_SYNC(TEST)
#undef TEST
    test_long(variables);
    test_int((int*)variables);
    test_old(heap);
    test_ring(heap);
    test_ring(variables);
    test_turns(heap);
    test_signal(heap);
    shmem_finalize();
    return 0;
}
