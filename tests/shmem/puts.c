// Tests puts and gets of every type and width, blocking and not, strided and in blocks, on the default context and on a created one, to the
// heap and to static memory.
#include "check.h"
#include "private.h"
#include "types.h"

enum { N = 24 };
static int me, n, next, before;
static shmem_ctx_t ctx;

static void settle(void) {
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
}

// The number of significant bytes of T: ten for long double on x86.
#define SIGNIFICANT(T) _Generic((T*)0, long double* : (size_t)10, default : sizeof(T))

// Clears `at`, lets the previous PE fill it by the call, and compares it. Then reads the next PE's elements back by every form of get.
#define PUT_CHECKED(T, call)                                                                                         \
    do {                                                                                                             \
        memset(at, 0, sizeof(T) * N);                                                                                \
        shmem_barrier_all();                                                                                         \
        call;                                                                                                        \
        settle();                                                                                                    \
        for (int i = 0; i < 5; i++) CHECK(memcmp(&at[i], &theirs[i], SIGNIFICANT(T)) == 0, #call ", element %d", i); \
        for (int i = 5; i < N; i++) CHECK(memcmp(&at[i], &nothing, SIGNIFICANT(T)) == 0, #call ", beyond: %d", i);   \
        shmem_barrier_all();                                                                                         \
    } while (0)
#define GET_CHECKED(T, call)                                                                                           \
    do {                                                                                                               \
        memset(got, 0, sizeof got);                                                                                    \
        call;                                                                                                          \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_quiet();                                                                                                 \
        for (int i = 0; i < 5; i++) CHECK(memcmp(&got[i], &of_next[i], SIGNIFICANT(T)) == 0, #call ", element %d", i); \
    } while (0)
// Puts every second element of the source into every third element of the target, and gets the elements back in the same way.
#define STRIDED_CHECKED(T, put, get)                                                    \
    do {                                                                                \
        memset(at, 0, sizeof(T) * N);                                                   \
        shmem_barrier_all();                                                            \
        T from[N], to[N];                                                               \
        memset(from, 0, sizeof from);                                                   \
        memset(to, 0, sizeof to);                                                       \
        for (int i = 0; i < 5; i++) from[2 * i] = mine[i];                              \
        put;                                                                            \
        settle();                                                                       \
        for (int i = 0; i < N; i++) {                                                   \
            const T* wanted = i % 3 == 0 && i / 3 < 5 ? &theirs[i / 3] : &nothing;      \
            CHECK(memcmp(&at[i], wanted, SIGNIFICANT(T)) == 0, #put ", element %d", i); \
        }                                                                               \
        shmem_barrier_all();                                                            \
        get;                                                                            \
        for (int i = 0; i < N; i++) {                                                   \
            const T* wanted = i % 2 == 0 && i / 2 < 5 ? &mine[i / 2] : &nothing;        \
            CHECK(memcmp(&to[i], wanted, SIGNIFICANT(T)) == 0, #get ", element %d", i); \
        }                                                                               \
        shmem_barrier_all();                                                            \
    } while (0)
// Puts two blocks of two elements, which begin 4 elements apart in the target and 3 in the source.
#define BLOCKS_CHECKED(T, put, get)                                                       \
    do {                                                                                  \
        memset(at, 0, sizeof(T) * N);                                                     \
        shmem_barrier_all();                                                              \
        T from[N], to[N];                                                                 \
        memset(from, 0, sizeof from);                                                     \
        memset(to, 0, sizeof to);                                                         \
        for (int i = 0; i < 4; i++) from[i / 2 * 3 + i % 2] = mine[i];                    \
        put;                                                                              \
        settle();                                                                         \
        for (int i = 0; i < N; i++) {                                                     \
            const T* wanted = i < 8 && i % 4 < 2 ? &theirs[i / 4 * 2 + i % 2] : &nothing; \
            CHECK(memcmp(&at[i], wanted, SIGNIFICANT(T)) == 0, #put ", element %d", i);   \
        }                                                                                 \
        shmem_barrier_all();                                                              \
        get;                                                                              \
        for (int i = 0; i < 6; i++) {                                                     \
            const T* wanted = i % 3 < 2 ? &mine[i / 3 * 2 + i % 3] : &nothing;            \
            CHECK(memcmp(&to[i], wanted, SIGNIFICANT(T)) == 0, #get ", element %d", i);   \
        }                                                                                 \
        shmem_barrier_all();                                                              \
    } while (0)

static void fill(void* memory, size_t bytes, int pe) {
    for (size_t i = 0; i < bytes; i++) ((unsigned char*)memory)[i] = (unsigned char)(pe * 37 + (int)i * 11 + 1);
}

#define COMMON(T)                                      \
    T mine[5], theirs[5], of_next[5], nothing, got[N]; \
    fill(mine, sizeof mine, me);                       \
    fill(theirs, sizeof theirs, before);               \
    fill(of_next, sizeof of_next, next);               \
    memset(&nothing, 0, sizeof nothing);               \
    T* source = (T*)space;                             \
    shmem_barrier_all();                               \
    memcpy(source, mine, sizeof mine);                 \
    T* at = (T*)(space + sizeof(T) * N);               \
    shmem_barrier_all();

static void test_widths(char* space) {
#define TEST(bits, T)                                                                                                  \
    {                                                                                                                  \
        COMMON(T)                                                                                                      \
        PUT_CHECKED(T, shmem_put##bits(at, mine, 5, next));                                                            \
        PUT_CHECKED(T, shmem_ctx_put##bits(ctx, at, mine, 5, next));                                                   \
        PUT_CHECKED(T, shmem_put##bits##_nbi(at, mine, 5, next));                                                      \
        PUT_CHECKED(T, shmem_ctx_put##bits##_nbi(ctx, at, mine, 5, next));                                             \
        GET_CHECKED(T, shmem_get##bits(got, source, 5, next));                                                         \
        GET_CHECKED(T, shmem_ctx_get##bits(ctx, got, source, 5, next));                                                \
        GET_CHECKED(T, shmem_get##bits##_nbi(got, source, 5, next));                                                   \
        GET_CHECKED(T, shmem_ctx_get##bits##_nbi(ctx, got, source, 5, next));                                          \
        STRIDED_CHECKED(T, shmem_iput##bits(at, from, 3, 2, 5, next), shmem_iget##bits(to, at, 2, 3, 5, next));        \
        STRIDED_CHECKED(T, shmem_ctx_iput##bits(ctx, at, from, 3, 2, 5, next),                                         \
                        shmem_ctx_iget##bits(ctx, to, at, 2, 3, 5, next));                                             \
        BLOCKS_CHECKED(T, shmem_ibput##bits(at, from, 4, 3, 2, 2, next), shmem_ibget##bits(to, at, 3, 4, 2, 2, next)); \
        BLOCKS_CHECKED(T, shmem_ctx_ibput##bits(ctx, at, from, 4, 3, 2, 2, next),                                      \
                       shmem_ctx_ibget##bits(ctx, to, at, 3, 4, 2, 2, next));                                          \
    }
    FOR_SIZES(TEST)
#undef TEST
    {
        COMMON(unsigned char)
        PUT_CHECKED(unsigned char, shmem_putmem(at, mine, 5, next));
        PUT_CHECKED(unsigned char, shmem_ctx_putmem(ctx, at, mine, 5, next));
        PUT_CHECKED(unsigned char, shmem_putmem_nbi(at, mine, 5, next));
        PUT_CHECKED(unsigned char, shmem_ctx_putmem_nbi(ctx, at, mine, 5, next));
        GET_CHECKED(unsigned char, shmem_getmem(got, source, 5, next));
        GET_CHECKED(unsigned char, shmem_ctx_getmem(ctx, got, source, 5, next));
        GET_CHECKED(unsigned char, shmem_getmem_nbi(got, source, 5, next));
        GET_CHECKED(unsigned char, shmem_ctx_getmem_nbi(ctx, got, source, 5, next));
    }
}

#define EQUAL(a, b, name) CHECK((a) == (b), #name ": the values differ")

#define TEST(name, T)                                                                                                        \
    static void test_##name(char* space) {                                                                                   \
        T mine[5], theirs[5], of_next[5], got[N], nothing = 0;                                                               \
        memset(mine, 0, sizeof mine);                                                                                        \
        memset(theirs, 0, sizeof theirs);                                                                                    \
        memset(of_next, 0, sizeof of_next);                                                                                  \
        memset(&nothing, 0, sizeof nothing);                                                                                 \
        for (int i = 0; i < 5; i++) {                                                                                        \
            mine[i] = (T)(me * 7 + i + 1);                                                                                   \
            theirs[i] = (T)(before * 7 + i + 1);                                                                             \
            of_next[i] = (T)(next * 7 + i + 1);                                                                              \
        }                                                                                                                    \
        T* source = (T*)space;                                                                                               \
        shmem_barrier_all();                                                                                                 \
        memcpy(source, mine, sizeof mine);                                                                                   \
        T* at = (T*)(space + sizeof(T) * N);                                                                                 \
        shmem_barrier_all();                                                                                                 \
        PUT_CHECKED(T, shmem_##name##_put(at, mine, 5, next));                                                               \
        PUT_CHECKED(T, shmem_ctx_##name##_put(ctx, at, mine, 5, next));                                                      \
        PUT_CHECKED(T, shmem_##name##_put_nbi(at, mine, 5, next));                                                           \
        PUT_CHECKED(T, shmem_ctx_##name##_put_nbi(ctx, at, mine, 5, next));                                                  \
        PUT_CHECKED(T, for (int i = 0; i < 5; i++) shmem_##name##_p(&at[i], mine[i], next));                                 \
        PUT_CHECKED(T, for (int i = 0; i < 5; i++) shmem_ctx_##name##_p(ctx, &at[i], mine[i], next));                        \
        GET_CHECKED(T, shmem_##name##_get(got, source, 5, next));                                                            \
        GET_CHECKED(T, shmem_ctx_##name##_get(ctx, got, source, 5, next));                                                   \
        GET_CHECKED(T, shmem_##name##_get_nbi(got, source, 5, next));                                                        \
        GET_CHECKED(T, shmem_ctx_##name##_get_nbi(ctx, got, source, 5, next));                                               \
        for (int i = 0; i < 5; i++) {                                                                                        \
            EQUAL(shmem_##name##_g(&source[i], next), of_next[i], name);                                                     \
            EQUAL(shmem_ctx_##name##_g(ctx, &source[i], next), of_next[i], name);                                            \
        }                                                                                                                    \
        STRIDED_CHECKED(T, shmem_##name##_iput(at, from, 3, 2, 5, next), shmem_##name##_iget(to, at, 2, 3, 5, next));        \
        STRIDED_CHECKED(T, shmem_ctx_##name##_iput(ctx, at, from, 3, 2, 5, next),                                            \
                        shmem_ctx_##name##_iget(ctx, to, at, 2, 3, 5, next));                                                \
        BLOCKS_CHECKED(T, shmem_##name##_ibput(at, from, 4, 3, 2, 2, next), shmem_##name##_ibget(to, at, 3, 4, 2, 2, next)); \
        BLOCKS_CHECKED(T, shmem_ctx_##name##_ibput(ctx, at, from, 4, 3, 2, 2, next),                                         \
                       shmem_ctx_##name##_ibget(ctx, to, at, 3, 4, 2, 2, next));                                             \
    }
FOR_RMA(TEST)
#undef TEST

static void test_all(char* space) {
    test_widths(space);
#define TEST(name, T) test_##name(space);
    FOR_RMA(TEST)
#undef TEST
}

/// Makes long puts, and more puts at a time than can be in flight.
static void test_many(void) {
    const size_t bytes = 3 << 20;
    unsigned char* there = shmem_malloc(bytes);
    unsigned char* here = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) here[i] = (unsigned char)(i * 7 + i / 251 + (size_t)me);
    shmem_putmem(there, here, bytes, next);
    memset(here, 0, bytes);
    shmem_barrier_all();
    for (size_t i = 0; i < bytes; i++)
        if (there[i] != (unsigned char)(i * 7 + i / 251 + (size_t)before)) CHECK(0, "byte %zu is %d", i, there[i]);
    shmem_getmem(here, there, bytes, next);
    for (size_t i = 0; i < bytes; i++)
        if (here[i] != (unsigned char)(i * 7 + i / 251 + (size_t)me)) CHECK(0, "byte %zu was returned as %d", i, here[i]);
    shmem_barrier_all();
    long* words = (long*)there;
    long values[1000];
    for (long i = 0; i < 1000; i++) {
        values[i] = i * 3 + me;
        shmem_long_put_nbi(&words[i], &values[i], 1, next);
    }
    shmem_quiet();
    shmem_barrier_all();
    for (long i = 0; i < 1000; i++) EXPECT_INT(words[i], i * 3 + before);
    shmem_putmem(there, here, 0, next);  // nothing
    free(here);
    shmem_free(there);
}

static char variables[64 * N * 2];

int main(void) {
    keep_variables_private();
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    EXPECT_INT(shmem_ctx_create(0, &ctx), 0);
    char* space = shmem_malloc(sizeof variables);
    test_all(space);
    test_all(variables);
    test_many();
    shmem_free(space);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
