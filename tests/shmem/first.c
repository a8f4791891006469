// The smallest complete program: every PE writes to the next.
#include "check.h"

static long here = -1;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    CHECK(n >= 1 && me >= 0 && me < n, "PE %d of %d", me, n);
    long* there = shmem_malloc(2 * sizeof *there);
    CHECK(there != NULL, "no memory");
    there[0] = there[1] = -1;
    shmem_barrier_all();
    const long value = 100 + me;
    shmem_long_put(there, &value, 1, (me + 1) % n);
    shmem_long_p(&here, value, (me + 1) % n);
    shmem_quiet();
    shmem_barrier_all();
    EXPECT_INT(there[0], 100 + (me + n - 1) % n);
    EXPECT_INT(here, 100 + (me + n - 1) % n);
    EXPECT_INT(there[1], -1);
    long got = 0;
    shmem_long_get(&got, there, 1, (me + 1) % n);
    EXPECT_INT(got, 100 + me);
    EXPECT_INT(shmem_long_g(&here, (me + 1) % n), 100 + me);
    shmem_barrier_all();
    shmem_free(there);
    shmem_finalize();
    return 0;
}
