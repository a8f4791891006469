// Tests collectives of every type over the world and over teams, and their active-set forms.
#include <complex.h>

#include "check.h"
#include "types.h"

enum { MOST = 64, N = 3 };
static int me, n;
static long psync[SHMEM_REDUCE_SYNC_SIZE];

// Tests broadcast, collect and all-to-all on a team of `size` members, in which this PE is `mine`. `number(i)` is a value unique to member
// i.
#define MOVES(name, T, suffix)                                                                  \
    static void moves_##name(shmem_team_t team, void* space) {                                  \
        const int size = shmem_team_n_pes(team), mine = shmem_team_my_pe(team);                 \
        T* from = space;                                                                        \
        T* to = from + 2 * N * MOST;                                                            \
        T value[2];                                                                             \
        for (int root = 0; root<size; root += size> 3 ? size - 1 : 1) {                         \
            for (int i = 0; i < N; i++) from[i] = (T)(mine * N + i), to[i] = (T)99;             \
            EXPECT_INT(shmem_##suffix##broadcast##name(team, to, from, N, root), 0);            \
            for (int i = 0; i < N; i++) {                                                       \
                value[0] = (T)(root * N + i);                                                   \
                CHECK(to[i] == value[0], #name ": broadcast, element %d", i);                   \
            }                                                                                   \
        }                                                                                       \
        const size_t own = (size_t)(mine % 3);                                                  \
        for (size_t i = 0; i < own; i++) from[i] = (T)(mine + 1);                               \
        EXPECT_INT(shmem_##suffix##collect##name(team, to, from, own), 0);                      \
        T* at = to;                                                                             \
        for (int pe = 0; pe < size; pe++)                                                       \
            for (int i = 0; i < pe % 3; i++) {                                                  \
                value[0] = (T)(pe + 1);                                                         \
                CHECK(*at++ == value[0], #name ": collect, PE %d", pe);                         \
            }                                                                                   \
        for (int i = 0; i < N; i++) from[i] = (T)(mine * 2 + i);                                \
        EXPECT_INT(shmem_##suffix##fcollect##name(team, to, from, N), 0);                       \
        for (int pe = 0; pe < size; pe++)                                                       \
            for (int i = 0; i < N; i++) {                                                       \
                value[0] = (T)(pe * 2 + i);                                                     \
                CHECK(to[pe * N + i] == value[0], #name ": fcollect, PE %d", pe);               \
            }                                                                                   \
        for (int i = 0; i < N * size; i++) from[i] = (T)(mine + i);                             \
        EXPECT_INT(shmem_##suffix##alltoall##name(team, to, from, N), 0);                       \
        for (int pe = 0; pe < size; pe++)                                                       \
            for (int i = 0; i < N; i++) {                                                       \
                value[0] = (T)(pe + mine * N + i);                                              \
                CHECK(to[pe * N + i] == value[0], #name ": alltoall, PE %d", pe);               \
            }                                                                                   \
        for (int i = 0; i < 2 * size; i++) from[i] = (T)(i % 2 ? 77 : mine + i);                \
        for (int i = 0; i < 3 * size; i++) to[i] = (T)55;                                       \
        EXPECT_INT(shmem_##suffix##alltoalls##name(team, to, from, 3, 2, 1), 0);                \
        for (int i = 0; i < 3 * size; i++) {                                                    \
            value[0] = (T)(i % 3 ? 55 : i / 3 + 2 * mine);                                      \
            if (i < 3 * size - 2) CHECK(to[i] == value[0], #name ": alltoalls, element %d", i); \
        }                                                                                       \
        EXPECT_INT(shmem_team_sync(team), 0);                                                   \
    }
#define MOVES_TYPED(name, T) MOVES(_of_##name, T, name##_)
// The typed functions are named shmem_<name>_broadcast, the untyped ones shmem_broadcastmem.
#define DEFINE(name, T)                                                                                              \
    static int shmem_##name##_broadcast_of_##name(shmem_team_t team, T* to, const T* from, size_t k, int root) {     \
        return shmem_##name##_broadcast(team, to, from, k, root);                                                    \
    }                                                                                                                \
    static int shmem_##name##_collect_of_##name(shmem_team_t team, T* to, const T* from, size_t k) {                 \
        return shmem_##name##_collect(team, to, from, k);                                                            \
    }                                                                                                                \
    static int shmem_##name##_fcollect_of_##name(shmem_team_t team, T* to, const T* from, size_t k) {                \
        return shmem_##name##_fcollect(team, to, from, k);                                                           \
    }                                                                                                                \
    static int shmem_##name##_alltoall_of_##name(shmem_team_t team, T* to, const T* from, size_t k) {                \
        return shmem_##name##_alltoall(team, to, from, k);                                                           \
    }                                                                                                                \
    static int shmem_##name##_alltoalls_of_##name(shmem_team_t team, T* to, const T* from, ptrdiff_t d, ptrdiff_t s, \
                                                  size_t k) {                                                        \
        return shmem_##name##_alltoalls(team, to, from, d, s, k);                                                    \
    }                                                                                                                \
    MOVES_TYPED(name, T)
FOR_RMA(DEFINE)
#undef DEFINE
MOVES(mem, unsigned char, )

// Element i of each PE: 1 or 2, so that products stay small and bitwise operations have both values.
#define OPERAND(pe, i) (((pe) + (i)) % 5 == 0 ? 2 : 1)
#define REDUCED(T, what, call, step, start)                                       \
    do {                                                                          \
        for (int i = 0; i < N; i++) from[i] = (T)OPERAND(mine, i), to[i] = (T)99; \
        call;                                                                     \
        for (int i = 0; i < N; i++) {                                             \
            T wanted = start;                                                     \
            for (int pe = 0; pe < size; pe++) {                                   \
                const T v = (T)OPERAND(pe, i);                                    \
                step;                                                             \
            }                                                                     \
            CHECK(to[i] == wanted, what ": element %d", i);                       \
        }                                                                         \
    } while (0)
#define BOTH(T, what, call, place, step, start) \
    REDUCED(T, what, call, step, start);        \
    REDUCED(T, what " in place", memcpy(to, from, N * sizeof(T)); place, step, start)
#define MEMBERS                                                             \
    const int size = shmem_team_n_pes(team), mine = shmem_team_my_pe(team); \
    (void)size;

#define SUMS(name, T)                                                                               \
    static void sums_##name(shmem_team_t team, void* space) {                                       \
        MEMBERS                                                                                     \
        T *from = space, *to = from + N;                                                            \
        BOTH(T, #name " sum", CHECK(shmem_##name##_sum_reduce(team, to, from, N) == 0, "failed"),   \
             shmem_##name##_sum_reduce(team, to, to, N), wanted = (T)(wanted + v), (T)0);           \
        BOTH(T, #name " prod", CHECK(shmem_##name##_prod_reduce(team, to, from, N) == 0, "failed"), \
             shmem_##name##_prod_reduce(team, to, to, N), wanted = (T)(wanted * v), (T)1);          \
        for (int i = 0; i < N; i++) from[i] = (T)OPERAND(mine, i);                                  \
        EXPECT_INT(shmem_##name##_sum_inscan(team, to, from, N), 0);                                \
        for (int i = 0; i < N; i++) {                                                               \
            T wanted = (T)0;                                                                        \
            for (int pe = 0; pe <= mine; pe++) wanted = (T)(wanted + (T)OPERAND(pe, i));            \
            CHECK(to[i] == wanted, #name " inscan: element %d", i);                                 \
        }                                                                                           \
        EXPECT_INT(shmem_##name##_sum_exscan(team, to, from, N), 0);                                \
        for (int i = 0; i < N; i++) {                                                               \
            T wanted = (T)0;                                                                        \
            for (int pe = 0; pe < mine; pe++) wanted = (T)(wanted + (T)OPERAND(pe, i));             \
            CHECK(to[i] == wanted, #name " exscan: element %d", i);                                 \
        }                                                                                           \
    }
FOR_REDUCE_INTEGERS(SUMS)
FOR_FLOATS(SUMS) FOR_COMPLEX(SUMS)
#define EXTREMES(name, T)                                                                         \
    static void extremes_##name(shmem_team_t team, void* space) {                                 \
        MEMBERS                                                                                   \
        T *from = space, *to = from + N;                                                          \
        BOTH(T, #name " min", CHECK(shmem_##name##_min_reduce(team, to, from, N) == 0, "failed"), \
             shmem_##name##_min_reduce(team, to, to, N), wanted = v < wanted ? v : wanted, (T)3); \
        BOTH(T, #name " max", CHECK(shmem_##name##_max_reduce(team, to, from, N) == 0, "failed"), \
             shmem_##name##_max_reduce(team, to, to, N), wanted = v > wanted ? v : wanted, (T)0); \
    }
    FOR_REDUCE_INTEGERS(EXTREMES) FOR_FLOATS(EXTREMES)
#define BITS(name, T)                                                                             \
    static void bits_##name(shmem_team_t team, void* space) {                                     \
        MEMBERS                                                                                   \
        T *from = space, *to = from + N;                                                          \
        BOTH(T, #name " and", CHECK(shmem_##name##_and_reduce(team, to, from, N) == 0, "failed"), \
             shmem_##name##_and_reduce(team, to, to, N), wanted = (T)(wanted & v), (T)~0);        \
        BOTH(T, #name " or", CHECK(shmem_##name##_or_reduce(team, to, from, N) == 0, "failed"),   \
             shmem_##name##_or_reduce(team, to, to, N), wanted = (T)(wanted | v), (T)0);          \
        BOTH(T, #name " xor", CHECK(shmem_##name##_xor_reduce(team, to, from, N) == 0, "failed"), \
             shmem_##name##_xor_reduce(team, to, to, N), wanted = (T)(wanted ^ v), (T)0);         \
    }
        FOR_REDUCE_BITWISE(BITS)

            static void over_team(shmem_team_t team, void* space) {
#define CALL(name, T) moves__of_##name(team, space);
    FOR_RMA(CALL)
#undef CALL
    moves_mem(team, space);
#define CALL(name, T) sums_##name(team, space);
    FOR_REDUCE_INTEGERS(CALL)
    FOR_FLOATS(CALL) FOR_COMPLEX(CALL)
#undef CALL
#define CALL(name, T) extremes_##name(team, space);
        FOR_REDUCE_INTEGERS(CALL) FOR_FLOATS(CALL)
#undef CALL
#define CALL(name, T) bits_##name(team, space);
            FOR_REDUCE_BITWISE(CALL)
#undef CALL
}

// An active set: every 2^log-th PE, beginning at `start`.
struct set {
    int start, log, size, mine;
};

#define TO_ALL(name, T, op, step, first)                                                                                      \
    REDUCED(T, #name " " #op " to all", shmem_##name##_##op##_to_all(to, from, N, set.start, set.log, set.size, work, psync), \
            step, (T)(first));
#define NUMBERS_TO_ALL(name, T)                            \
    {                                                      \
        T *from = space, *to = from + N, *work = to + N;   \
        TO_ALL(name, T, sum, wanted = (T)(wanted + v), 0)  \
        TO_ALL(name, T, prod, wanted = (T)(wanted * v), 1) \
    }
#define EXTREMES_TO_ALL(name, T)                                  \
    {                                                             \
        T *from = space, *to = from + N, *work = to + N;          \
        TO_ALL(name, T, min, wanted = v < wanted ? v : wanted, 3) \
        TO_ALL(name, T, max, wanted = v > wanted ? v : wanted, 0) \
    }
#define BITS_TO_ALL(name, T)                               \
    {                                                      \
        T *from = space, *to = from + N, *work = to + N;   \
        TO_ALL(name, T, and, wanted = (T)(wanted & v), ~0) \
        TO_ALL(name, T, or, wanted = (T)(wanted | v), 0)   \
        TO_ALL(name, T, xor, wanted = (T)(wanted ^ v), 0)  \
    }
#define MOVES_ACTIVE(bits)                                                                          \
    {                                                                                               \
        uint##bits##_t *from = space, *to = from + 4 * MOST;                                        \
        for (int i = 0; i < N; i++) from[i] = (uint##bits##_t)(mine * N + i), to[i] = 99;           \
        shmem_barrier(set.start, set.log, set.size, psync);                                         \
        shmem_broadcast##bits(to, from, N, size - 1, set.start, set.log, set.size, psync);          \
        for (int i = 0; i < N; i++) EXPECT_INT(to[i], mine == size - 1 ? 99 : (size - 1) * N + i);  \
        shmem_fcollect##bits(to, from, N, set.start, set.log, set.size, psync);                     \
        for (int i = 0; i < N * size; i++) EXPECT_INT(to[i], i);                                    \
        shmem_collect##bits(to, from, (size_t)(mine % 2 + 1), set.start, set.log, set.size, psync); \
        for (int pe = 0, i = 0; pe < size; pe++)                                                    \
            for (int k = 0; k <= pe % 2; k++) EXPECT_INT(to[i++], pe* N + k);                       \
        for (int i = 0; i < 2 * size; i++) from[i] = (uint##bits##_t)(mine + 10 * i);               \
        shmem_alltoall##bits(to, from, 2, set.start, set.log, set.size, psync);                     \
        for (int i = 0; i < 2 * size; i++) EXPECT_INT(to[i], i / 2 + 10 * (2 * mine + i % 2));      \
        shmem_alltoalls##bits(to, from, 2, 2, 1, set.start, set.log, set.size, psync);              \
        for (int i = 0; i < size; i++) EXPECT_INT(to[2 * i], i + 10 * 2 * mine);                    \
        (shmem_sync)(set.start, set.log, set.size, psync);                                          \
    }

static void over_active_set(struct set set, void* space) {
    const int size = set.size, mine = set.mine;
    MOVES_ACTIVE(32)
    MOVES_ACTIVE(64)
    FOR_WAIT(NUMBERS_TO_ALL)
    FOR_FLOATS(NUMBERS_TO_ALL) FOR_COMPLEX(NUMBERS_TO_ALL) FOR_WAIT(EXTREMES_TO_ALL) FOR_FLOATS(EXTREMES_TO_ALL)
        FOR_WAIT(BITS_TO_ALL)
}

static void test_long_ones(void) {
    const size_t count = 100000;
    long* from = shmem_malloc(count * sizeof *from);
    long* to = shmem_malloc(count * sizeof *to * (size_t)n);
    for (size_t i = 0; i < count; i++) from[i] = (long)i + me;
    EXPECT_INT(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, count), 0);
    for (size_t i = 0; i < count; i++) EXPECT_INT(to[i], (long)i * n + n * (n - 1) / 2);
    EXPECT_INT(shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, count), 0);
    for (int pe = 0; pe < n; pe++)
        for (size_t i = 0; i < count; i += 997) EXPECT_INT(to[(size_t)pe * count + i], (long)i + pe);
    shmem_free(from);
    shmem_free(to);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    void* space = shmem_malloc(16 * 8 * N * MOST);
    over_team(SHMEM_TEAM_WORLD, space);
    shmem_team_t odd;
    EXPECT_INT(shmem_team_split_strided(SHMEM_TEAM_WORLD, n > 1, 2, n > 1 ? n / 2 : 1, NULL, 0, &odd), 0);
    if (odd != SHMEM_TEAM_INVALID) {
        over_team(odd, space);
        shmem_team_destroy(odd);
    }
    shmem_barrier_all();
    over_active_set((struct set){0, 0, n, me}, space);
    if (me % 2 == 0) over_active_set((struct set){0, 1, (n + 1) / 2, me / 2}, space);
    shmem_sync_all();
    test_long_ones();
    shmem_free(space);
    shmem_finalize();
    return 0;
}
