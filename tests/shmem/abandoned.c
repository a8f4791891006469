// A PE dies while the others wait for a word that no PE changes (--enable-recovery): the job must end with an error that gives the reason.
#include <shmem.h>
#include <signal.h>

int main(void) {
    static long word;
    static int ready;
    shmem_init();
    const int doomed = shmem_n_pes() - 1;
    if (shmem_my_pe() == doomed) {
        shmem_int_wait_until(&ready, SHMEM_CMP_EQ, doomed);  // no other PE starts up any more
        raise(SIGKILL);
    }
    shmem_int_atomic_inc(&ready, doomed);
    shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
    shmem_finalize();
    return 0;
}
