// A program written before OpenSHMEM 1.0, which does not call shmem_finalize, must still work.
#include <mpp/shmem.h>

#include "check.h"

static long pwrk, psync[SHMEM_REDUCE_SYNC_SIZE], target, source;

int main(void) {
    start_pes(0);
    source = _my_pe() + 1;
    shmem_long_sum_to_all(&target, &source, 1, 0, 0, _num_pes(), &pwrk, psync);
    EXPECT_INT(target, _num_pes() * (_num_pes() + 1) / 2);
    long* memory = shmalloc(sizeof *memory);
    shmem_long_p(memory, 5, 0);
    shmem_barrier_all();
    return 0;
}
