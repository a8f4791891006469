// Tests atomic operations of every type: sums of all PEs on one PE, fetch, compare-and-swap, bitwise operations, deprecated forms, and
// signals.
#include "check.h"
#include "types.h"

static int me, n, next, before;
static shmem_ctx_t ctx;

static void settle(void) {
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
}

// Expects that all PEs have added `each` to PE 0's element, which began as `from`.
#define EXPECT_SUM(name, T, from, each)                                                \
    do {                                                                               \
        settle();                                                                      \
        if (me == 0) CHECK(*at == (T)((from) + (each)*n), #name ": the sum is wrong"); \
        EQUAL(shmem_##name##_atomic_fetch(at, 0), (T)((from) + (each)*n), name);       \
        shmem_barrier_all();                                                           \
        *at = (T)(from);                                                               \
        shmem_barrier_all();                                                           \
    } while (0)
#define EQUAL(a, b, name) CHECK((a) == (b), #name ": the values differ")
#define STEP(call)           \
    do {                     \
        *at = (T_)(10 + me); \
        shmem_barrier_all(); \
        call;                \
        settle();            \
    } while (0)

// The previous PE changes each PE's element, which begins as 10 + the owner's number.
#define TEST_ANY(name, T)                                                                       \
    static void any_##name(T* at) {                                                             \
        typedef T T_;                                                                           \
        T old = 0;                                                                              \
        STEP(shmem_##name##_atomic_set(at, (T)(70 + me), next));                                \
        EQUAL(*at, (T)(70 + before), name);                                                     \
        STEP(shmem_ctx_##name##_atomic_set(ctx, at, (T)(71 + me), next));                       \
        EQUAL(*at, (T)(71 + before), name);                                                     \
        STEP(old = shmem_##name##_atomic_swap(at, (T)(72 + me), next));                         \
        EQUAL(*at, (T)(72 + before), name);                                                     \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(old = shmem_ctx_##name##_atomic_swap(ctx, at, (T)(73 + me), next));                \
        EQUAL(*at, (T)(73 + before), name);                                                     \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(shmem_##name##_atomic_swap_nbi(&old, at, (T)(74 + me), next); shmem_quiet());      \
        EQUAL(*at, (T)(74 + before), name);                                                     \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(shmem_ctx_##name##_atomic_swap_nbi(ctx, &old, at, (T)(75 + me), next));            \
        EQUAL(*at, (T)(75 + before), name);                                                     \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(old = shmem_##name##_atomic_fetch(at, next));                                      \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(old = shmem_ctx_##name##_atomic_fetch(ctx, at, next));                             \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(shmem_##name##_atomic_fetch_nbi(&old, at, next); shmem_quiet());                   \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(shmem_ctx_##name##_atomic_fetch_nbi(ctx, &old, at, next));                         \
        EQUAL(old, (T)(10 + next), name);                                                       \
        STEP(shmem_##name##_set(at, (T)(76 + me), next); old = shmem_##name##_fetch(at, next)); \
        EQUAL(*at, (T)(76 + before), name);                                                     \
        EQUAL(old, (T)(76 + me), name);                                                         \
        STEP(old = shmem_##name##_swap(at, (T)(77 + me), next));                                \
        EQUAL(*at, (T)(77 + before), name);                                                     \
        EQUAL(old, (T)(10 + next), name);                                                       \
        shmem_barrier_all();                                                                    \
    }
FOR_AMO(TEST_ANY)
FOR_AMO_FLOATS(TEST_ANY)

#define TEST_SUMS(name, T)                                                                                 \
    static void sums_##name(T* at) {                                                                       \
        T old = 0;                                                                                         \
        *at = 5;                                                                                           \
        shmem_barrier_all();                                                                               \
        shmem_##name##_atomic_add(at, (T)3, 0);                                                            \
        EXPECT_SUM(name, T, 5, 3);                                                                         \
        shmem_ctx_##name##_atomic_add(ctx, at, (T)3, 0);                                                   \
        EXPECT_SUM(name, T, 5, 3);                                                                         \
        shmem_##name##_add(at, (T)3, 0);                                                                   \
        EXPECT_SUM(name, T, 5, 3);                                                                         \
        shmem_##name##_atomic_inc(at, 0);                                                                  \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_ctx_##name##_atomic_inc(ctx, at, 0);                                                         \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_##name##_inc(at, 0);                                                                         \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        old = shmem_##name##_atomic_fetch_add(at, (T)2, 0);                                                \
        CHECK((old - 5) % 2 == 0 && old >= 5 && old < (T)(5 + 2 * n), #name ": fetched another value");    \
        EXPECT_SUM(name, T, 5, 2);                                                                         \
        old = shmem_ctx_##name##_atomic_fetch_add(ctx, at, (T)2, 0);                                       \
        CHECK((old - 5) % 2 == 0 && old >= 5 && old < (T)(5 + 2 * n), #name ": fetched another value");    \
        EXPECT_SUM(name, T, 5, 2);                                                                         \
        shmem_##name##_fadd(at, (T)2, 0);                                                                  \
        EXPECT_SUM(name, T, 5, 2);                                                                         \
        shmem_##name##_atomic_fetch_add_nbi(&old, at, (T)2, 0);                                            \
        shmem_quiet();                                                                                     \
        CHECK((old - 5) % 2 == 0 && old >= 5 && old < (T)(5 + 2 * n), #name ": fetched another value");    \
        EXPECT_SUM(name, T, 5, 2);                                                                         \
        shmem_ctx_##name##_atomic_fetch_add_nbi(ctx, &old, at, (T)2, 0);                                   \
        EXPECT_SUM(name, T, 5, 2);                                                                         \
        old = shmem_##name##_atomic_fetch_inc(at, 0);                                                      \
        CHECK(old >= 5 && old < (T)(5 + n), #name ": fetched another value");                              \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_ctx_##name##_atomic_fetch_inc(ctx, at, 0);                                                   \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_##name##_finc(at, 0);                                                                        \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_##name##_atomic_fetch_inc_nbi(&old, at, 0);                                                  \
        shmem_quiet();                                                                                     \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        shmem_ctx_##name##_atomic_fetch_inc_nbi(ctx, &old, at, 0);                                         \
        EXPECT_SUM(name, T, 5, 1);                                                                         \
        typedef T T_;                                                                                      \
        STEP(old = shmem_##name##_atomic_compare_swap(at, (T)(10 + next), (T)1, next));                    \
        EQUAL(*at, (T)1, name);                                                                            \
        EQUAL(old, (T)(10 + next), name);                                                                  \
        STEP(old = shmem_##name##_atomic_compare_swap(at, (T)99, (T)1, next));                             \
        EQUAL(*at, (T)(10 + me), name);                                                                    \
        EQUAL(old, (T)(10 + next), name);                                                                  \
        STEP(old = shmem_ctx_##name##_atomic_compare_swap(ctx, at, (T)(10 + next), (T)2, next));           \
        EQUAL(*at, (T)2, name);                                                                            \
        STEP(shmem_##name##_atomic_compare_swap_nbi(&old, at, (T)(10 + next), (T)3, next); shmem_quiet()); \
        EQUAL(*at, (T)3, name);                                                                            \
        EQUAL(old, (T)(10 + next), name);                                                                  \
        STEP(shmem_ctx_##name##_atomic_compare_swap_nbi(ctx, &old, at, (T)(10 + next), (T)4, next));       \
        EQUAL(*at, (T)4, name);                                                                            \
        STEP(old = shmem_##name##_cswap(at, (T)(10 + next), (T)5, next));                                  \
        EQUAL(*at, (T)5, name);                                                                            \
        EQUAL(old, (T)(10 + next), name);                                                                  \
        shmem_barrier_all();                                                                               \
    }
FOR_AMO(TEST_SUMS)

#define BITS_ONE(name, T, op, sign)                                                    \
    STEP(shmem_##name##_atomic_##op(at, (T)6, next));                                  \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    STEP(shmem_ctx_##name##_atomic_##op(ctx, at, (T)6, next));                         \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    STEP(old = shmem_##name##_atomic_fetch_##op(at, (T)6, next));                      \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    EQUAL(old, (T)(10 + next), name);                                                  \
    STEP(old = shmem_ctx_##name##_atomic_fetch_##op(ctx, at, (T)6, next));             \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    EQUAL(old, (T)(10 + next), name);                                                  \
    STEP(shmem_##name##_atomic_fetch_##op##_nbi(&old, at, (T)6, next); shmem_quiet()); \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    EQUAL(old, (T)(10 + next), name);                                                  \
    STEP(shmem_ctx_##name##_atomic_fetch_##op##_nbi(ctx, &old, at, (T)6, next));       \
    EQUAL(*at, (T)((10 + me) sign 6), name);                                           \
    EQUAL(old, (T)(10 + next), name);
#define TEST_BITS(name, T)           \
    static void bits_##name(T* at) { \
        typedef T T_;                \
        T old = 0;                   \
        BITS_ONE(name, T, and, &)    \
        BITS_ONE(name, T, or, |)     \
        BITS_ONE(name, T, xor, ^)    \
        shmem_barrier_all();         \
    }
FOR_BITWISE(TEST_BITS)

static void test_all(void* at) {
#define CALL(name, T) any_##name(at);
    FOR_AMO(CALL)
    FOR_AMO_FLOATS(CALL)
#undef CALL
#define CALL(name, T) sums_##name(at);
    FOR_AMO(CALL)
#undef CALL
#define CALL(name, T) bits_##name(at);
    FOR_BITWISE(CALL)
#undef CALL
    long* word = at;
    *word = 4 + me;
    shmem_barrier_all();
    EXPECT_INT((shmem_swap)(word, 40 + me, next), 4 + next);
    settle();
    EXPECT_INT(*word, 40 + before);
    shmem_barrier_all();
}

#define SIGNALLED(T, call)                                                                        \
    do {                                                                                          \
        memset(at, 0, 5 * sizeof(T));                                                             \
        *signal = 3;                                                                              \
        shmem_barrier_all();                                                                      \
        call;                                                                                     \
        EXPECT_INT(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 11), 11);                        \
        EXPECT_INT(shmem_signal_fetch(signal), 11);                                               \
        CHECK(memcmp(at, theirs, sizeof theirs) == 0, #call ": the signal came before the data"); \
        settle();                                                                                 \
    } while (0)
#define SIGNAL_FORMS(T, suffix_less, with_ctx)                                        \
    SIGNALLED(T, suffix_less(at, mine, 5, signal, 11, SHMEM_SIGNAL_SET, next));       \
    SIGNALLED(T, suffix_less(at, mine, 5, signal, 8, SHMEM_SIGNAL_ADD, next));        \
    SIGNALLED(T, suffix_less##_nbi(at, mine, 5, signal, 11, SHMEM_SIGNAL_SET, next)); \
    SIGNALLED(T, suffix_less##_nbi(at, mine, 5, signal, 8, SHMEM_SIGNAL_ADD, next));  \
    SIGNALLED(T, with_ctx(ctx, at, mine, 5, signal, 11, SHMEM_SIGNAL_SET, next));     \
    SIGNALLED(T, with_ctx##_nbi(ctx, at, mine, 5, signal, 8, SHMEM_SIGNAL_ADD, next));

static void test_signals(char* space, uint64_t* signal) {
#define TEST(name, T)                                                                   \
    {                                                                                   \
        T* at = (T*)space;                                                              \
        T mine[5], theirs[5];                                                           \
        memset(mine, 0, sizeof mine);                                                   \
        memset(theirs, 0, sizeof theirs);                                               \
        for (int i = 0; i < 5; i++) mine[i] = (T)(me + i), theirs[i] = (T)(before + i); \
        SIGNAL_FORMS(T, shmem_##name##_put_signal, shmem_ctx_##name##_put_signal)       \
    }
    FOR_RMA(TEST)
#undef TEST
#define TEST(bits, T)                                                           \
    {                                                                           \
        T* at = (T*)space;                                                      \
        T mine[5], theirs[5];                                                   \
        memset(mine, me + 1, sizeof mine);                                      \
        memset(theirs, before + 1, sizeof theirs);                              \
        SIGNAL_FORMS(T, shmem_put##bits##_signal, shmem_ctx_put##bits##_signal) \
    }
    FOR_SIZES(TEST)
    TEST(mem, char)
#undef TEST
    *signal = 3;
    shmem_barrier_all();
    shmem_signal_set(signal, 5, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 5);
    settle();
    shmem_ctx_signal_set(ctx, signal, 6, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, 6);
    settle();
    shmem_signal_add(signal, 1, next);
    shmem_ctx_signal_add(ctx, signal, 1, next);
    EXPECT_INT(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 8), 8);
    settle();
}

static long variable[2];
static char variables[256];
static uint64_t static_signal;

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    EXPECT_INT(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx), 0);
    long* heap = shmem_malloc(256);
    uint64_t* signal = shmem_malloc(sizeof *signal);
    test_all(heap);
    test_all(variable);
    test_signals((char*)heap, signal);
    test_signals(variables, &static_signal);
    test_signals((char*)heap, &static_signal);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
