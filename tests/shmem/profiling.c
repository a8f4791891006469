// Tests the profiling interface: the program's own shmem_long_p replaces the library's and calls it as pshmem_long_p.
#include "check.h"

static int calls = 0;

void shmem_long_p(long* dest, long value, int pe) {
    calls++;
    pshmem_long_p(dest, value + 1, pe);
}

int main(void) {
    pshmem_init();
    long* word = pshmem_malloc(sizeof *word);
    const int me = pshmem_my_pe(), n = pshmem_n_pes();
    shmem_long_p(word, me, (me + 1) % n);
    pshmem_barrier_all();
    EXPECT_INT(calls, 1);
    EXPECT_INT(*word, (me + n - 1) % n + 1);
    pshmem_finalize();
    return 0;
}
