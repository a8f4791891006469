// A PE of a job that goes on without those who die (--enable-recovery) dies while the others wait for memory that nobody changes: the job
// ends, and says why.
#include <shmem.h>
#include <signal.h>

int main(void) {
    static long word;
    shmem_init();
    shmem_barrier_all();
    if (shmem_my_pe() == shmem_n_pes() - 1) raise(SIGKILL);
    shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
    shmem_finalize();
    return 0;
}
