// No traffic without need: from the beginning of shmem_init to the first access there is no packet, no connection and no contact with a
// peer, whatever local calls are made meanwhile. The first access contacts one peer, the PE that is accessed.
#include "check.h"
#include "counters.h"
#include "private.h"

static long here[16];

/// Checks that all counters are 0. With STARLING_WAIT=thread it returns at once: a PE already answers a faster neighbor's accesses here, so
/// the counters say nothing about its own calls.
static void expect_silence(const char* since) {
    const char* waits = getenv("STARLING_WAIT");
    if (waits && !strcmp(waits, "thread")) return;
    for (int i = 0; i < kCounters; i++) CHECK(counter(i) == 0, "%s has made %s %ld", since, kCounterNames[i], counter(i));
}

int main(void) {
    CHECK(start_counters(), "a counter is missing");
    keep_variables_private();
    shmem_init();
    expect_silence("shmem_init");
    const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
    shmem_ctx_t context;
    shmem_team_t team;
    EXPECT_INT(shmem_ctx_create(0, &context), 0);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team);
    EXPECT_INT(shmem_team_my_pe(team), me);
    EXPECT_INT(shmem_addr_accessible(here, next), 1);
    shmem_fence();
    shmem_quiet();
    shmem_ctx_destroy(context);
    expect_silence("local calls");
    shmem_long_p(&here[0], 100 + me, next);
    EXPECT_INT(counter(kPesAccessed), n > 1);
    EXPECT_INT(counter(kOpened), 0);
    const int mapped = shmem_ptr(here, next) != NULL;
    if (!mapped) CHECK(counter(kPeersMet) > 0, "the first access has contacted no peer");
    shmem_long_wait_until(&here[0], SHMEM_CMP_NE, 0);
    EXPECT_INT(here[0], 100 + (me + n - 1) % n);
    // Several more accesses: no further peer is contacted.
    for (int i = 1; i < 16; i++) {
        shmem_long_p(&here[i], i, next);
        CHECK(shmem_long_g(&here[i], next) == i, "%d", i);
        EXPECT_INT(shmem_long_atomic_fetch_inc(&here[i], next), i);
    }
    EXPECT_INT(counter(kPesAccessed), n > 1);
    const long far = counter(kPuts) + counter(kGets) + counter(kUpdates);
    EXPECT_INT(far, mapped ? 0 : 1 + 15 * 3);
    shmem_team_destroy(team);
    shmem_finalize();
    return 0;
}
