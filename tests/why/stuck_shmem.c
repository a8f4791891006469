// OpenSHMEM jobs that hang; argv[1] selects how. They hang until they are killed.
#include <shmem.h>
#include <string.h>

static long lock, flag;

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe();
    const char* const way = argc > 1 ? argv[1] : "";
    // PE 0 holds the lock and waits for PE 1, which requests the lock.
    if (!strcmp(way, "lock")) {
        if (me == 0) shmem_set_lock(&lock);
        shmem_barrier_all();
        if (me == 1) shmem_set_lock(&lock);
        if (me == 0) shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
    // No PE sets the flags.
    if (!strcmp(way, "memory")) shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    // The last PE does not reach the barrier, because it waits.
    if (!strcmp(way, "barrier") && me == shmem_n_pes() - 1) shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
