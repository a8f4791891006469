// Tests teams: split by strides and in two dimensions without any message, translated, configured, with contexts, destroyed and created
// again; pointers to other PEs' memory; errors.
#include "check.h"

static int me, n;

static void test_predefined(void) {
    EXPECT_INT(shmem_team_my_pe(SHMEM_TEAM_WORLD), me);
    EXPECT_INT(shmem_team_n_pes(SHMEM_TEAM_WORLD), n);
    EXPECT_INT(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    EXPECT_INT(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    const int near = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    CHECK(near >= 1 && near <= n, "%d PEs share memory", near);
    EXPECT_INT(shmem_team_translate_pe(SHMEM_TEAM_SHARED, shmem_team_my_pe(SHMEM_TEAM_SHARED), SHMEM_TEAM_WORLD), me);
    EXPECT_INT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, n, SHMEM_TEAM_WORLD), -1);
    EXPECT_INT(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD), -1);
    EXPECT_INT(shmem_team_sync(SHMEM_TEAM_WORLD), 0);
    CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0, "sync of no team");
}

static void test_pointers(void) {
    long* word = shmem_malloc(sizeof *word);
    *word = me;
    shmem_barrier_all();
    const int near = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    for (int i = 0; i < near; i++) {
        const int pe = shmem_team_translate_pe(SHMEM_TEAM_SHARED, i, SHMEM_TEAM_WORLD);
        const long* there = shmem_ptr(word, pe);
        CHECK(there != NULL, "no pointer to PE %d, which shares memory", pe);
        EXPECT_INT(*there, pe);
        CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, word, i) == there, "shmem_team_ptr and shmem_ptr return different pointers");
    }
    int local;
    CHECK(shmem_ptr(&local, me) == NULL, "shmem_ptr returned a pointer to memory that is not symmetric");
    CHECK(shmem_ptr(word, n) == NULL, "a pointer to no PE");
    CHECK(shmem_ptr(word, me) == word, "shmem_ptr returned another address for this PE's memory");
    EXPECT_INT(shmem_pe_accessible(n - 1), 1);
    EXPECT_INT(shmem_pe_accessible(n), 0);
    EXPECT_INT(shmem_pe_accessible(-1), 0);
    EXPECT_INT(shmem_addr_accessible(word, n - 1), 1);
    EXPECT_INT(shmem_addr_accessible(&local, n - 1), 0);
    EXPECT_INT(shmem_addr_accessible(&me, n - 1), 1);
    EXPECT_INT(shmem_addr_accessible(word, n), 0);
    shmem_free(word);
}

// Sums up over the team the values that all members put to the first through a context of the team.
static void use(shmem_team_t team, long* sum) {
    const int size = shmem_team_n_pes(team), mine = shmem_team_my_pe(team);
    *sum = 0;
    EXPECT_INT(shmem_team_sync(team), 0);
    shmem_ctx_t ctx;
    EXPECT_INT(shmem_team_create_ctx(team, 0, &ctx), 0);
    shmem_team_t of;
    EXPECT_INT(shmem_ctx_get_team(ctx, &of), 0);
    CHECK(of == team, "the context is of another team");
    shmem_ctx_long_atomic_add(ctx, sum, mine + 1, 0);
    shmem_ctx_quiet(ctx);
    EXPECT_INT(shmem_team_sync(team), 0);
    if (mine == 0) EXPECT_INT(*sum, size * (size + 1) / 2);
    EXPECT_INT(shmem_ctx_long_g(ctx, sum, 0), size * (size + 1) / 2);
    shmem_ctx_fence(ctx);
    EXPECT_INT(shmem_team_sync(team), 0);
    shmem_ctx_destroy(ctx);
}

static void test_strided(long* sum) {
    for (int stride = 1; stride <= 3; stride++)
        for (int start = 0; start < stride && start < n; start++) {
            const int size = (n - start + stride - 1) / stride;
            shmem_team_config_t config = {2};
            shmem_team_t team = SHMEM_TEAM_WORLD;
            EXPECT_INT(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, &config, SHMEM_TEAM_NUM_CONTEXTS, &team),
                       0);
            if (me % stride != start) {
                CHECK(team == SHMEM_TEAM_INVALID, "a team for a PE that is not in it");
                continue;
            }
            EXPECT_INT(shmem_team_n_pes(team), size);
            EXPECT_INT(shmem_team_my_pe(team), me / stride);
            EXPECT_INT(shmem_team_translate_pe(team, size - 1, SHMEM_TEAM_WORLD), start + (size - 1) * stride);
            EXPECT_INT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, team), me / stride);
            config.num_contexts = 0;
            EXPECT_INT(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config), 0);
            EXPECT_INT(config.num_contexts, 2);
            use(team, sum);
            // A team of a team: its second half in reverse order.
            shmem_team_t half;
            const int first = size / 2;
            EXPECT_INT(shmem_team_split_strided(team, size - 1, -1, size - first, NULL, 0, &half), 0);
            if (half != SHMEM_TEAM_INVALID) {
                EXPECT_INT(shmem_team_my_pe(half), size - 1 - me / stride);
                use(half, sum);
                shmem_team_destroy(half);
            }
            shmem_team_destroy(team);
        }
    shmem_barrier_all();
    shmem_team_t team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &team) != 0, "a team of too many");
    CHECK(team == SHMEM_TEAM_INVALID, "a team with too many PEs was created");
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0, "a team of no team");
}

static void test_two_dimensions(long* sum) {
    for (int range = 1; range <= 4; range++) {
        shmem_team_t x, y;
        EXPECT_INT(shmem_team_split_2d(SHMEM_TEAM_WORLD, range, NULL, 0, &x, NULL, 0, &y), 0);
        const int width = range < n ? range : n, row = me / width, column = me % width;
        EXPECT_INT(shmem_team_my_pe(x), column);
        EXPECT_INT(shmem_team_my_pe(y), row);
        EXPECT_INT(shmem_team_n_pes(x), n - row * width < width ? n - row * width : width);
        EXPECT_INT(shmem_team_n_pes(y), (n - column + width - 1) / width);
        use(x, sum);
        use(y, sum);
        shmem_barrier_all();
        shmem_team_destroy(x);
        shmem_team_destroy(y);
    }
}

static void test_contexts(void) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    shmem_team_t team;
    EXPECT_INT(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team), 0);
    CHECK(team == SHMEM_TEAM_WORLD, "the default context is of another team");
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID, "a team of no context");
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID, "a context of no team");
    // A PE outside a team has SHMEM_CTX_INVALID in place of a context, and these calls must accept it.
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_t many[50];
    for (int i = 0; i < 50; i++) EXPECT_INT(shmem_ctx_create(SHMEM_CTX_PRIVATE, &many[i]), 0);
    for (int i = 0; i < 50; i++) shmem_ctx_destroy(many[i]);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_session_config_t config = {100};
    EXPECT_INT(shmem_ctx_create(0, &ctx), 0);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_destroy(ctx);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    long* sum = shmem_malloc(sizeof *sum);
    test_predefined();
    test_pointers();
    test_strided(sum);
    test_two_dimensions(sum);
    test_contexts();
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    shmem_finalize();
    return 0;
}
