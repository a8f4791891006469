// A PE dies while the others wait for a word that no PE changes (--enable-recovery): the job must end with an error that gives the reason.
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
