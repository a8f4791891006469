// Initializes OpenSHMEM repeatedly while one PE's shmem_finalize is slow. An early PE must wait for the slow one and access its new memory,
// not the memory that is about to be freed.
#include "check.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long early;
static int slow;

/// Delays the unmapping of memory in shmem_finalize.
int munmap(void* memory, size_t bytes) {
    if (slow) usleep(20000);
    return (int)syscall(SYS_munmap, memory, bytes);
}

int main(void) {
    for (long round = 1; round <= 6; round++) {
        shmem_init();
        const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
        slow = 0;
        shmem_long_p(&early, round, next);
        long* there = shmem_calloc(1, sizeof *there);
        shmem_long_p(there, round, next);
        shmem_barrier_all();
        EXPECT_INT(early, round);
        EXPECT_INT(*there, round);
        slow = me == round % n;
        shmem_finalize();
    }
    return 0;
}
