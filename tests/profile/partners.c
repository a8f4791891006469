/* OpenSHMEM accesses with changing partners: in phase a the next PE, in phase b the one after; long enough to justify a connection. Each PE
 * prints how many of its sent packets used connections. */
#include <mpi-ext.h>
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>

#include "../shmem/counters.h"

enum { kCycles = 5, kAccesses = 50, kWords = 1500 };

int main(void) {
    start_counters();
    MPI_Init(NULL, NULL);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    static long updates, out[kWords];
    long* words = shmem_calloc(kWords, sizeof *words);
    for (int i = 0; i < 2 * kCycles; i++) {
        const int to = (me + 1 + i % 2) % n;
        MPIX_Phase_begin(MPI_COMM_WORLD, i % 2 ? "b" : "a");
        for (int access = 0; access < kAccesses; access++) {
            for (int word = 0; word < kWords; word++) out[word] = me * 1000000L + i * 1000 + access;
            shmem_long_put(words, out, kWords, to);
            shmem_long_atomic_inc(&updates, to);
        }
        shmem_barrier_all();
        const int from = (me + 2 * n - 1 - i % 2) % n;
        for (int word = 0; word < kWords; word++)
            if (words[word] != from * 1000000L + i * 1000 + kAccesses - 1) shmem_global_exit(9);
        if (updates != (i + 1) * kAccesses) shmem_global_exit(10);
        shmem_barrier_all();
    }
    printf("connected %ld of %ld\n", counter(kTcp), counter(kTcp) + counter(kUdp));
    shmem_finalize();
    MPI_Finalize();
    return 0;
}
