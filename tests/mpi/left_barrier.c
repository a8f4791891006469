// A rank dies right after it has left a barrier. It has done its part, so the barrier succeeds on all others of its host, although some are
// still in it. The barrier is the first collective call on a new communicator. Ranks die until two are left; the argument is a seed.
#include <mpi-ext.h>

#include "death.h"

int main(int argc, char** argv) {
    int rank, size, ready = 1;
    MPI_Comm comm;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 2);
    uint64_t state = test_seed = (uint64_t)atoi(argv[1]);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    do {
        OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        const int doomed = (int)(next_random(&state) % (uint64_t)size);
        OK(MPI_Barrier(comm));
        if (rank == doomed && size > 2) raise(SIGKILL);
        OK(MPI_Comm_free(&comm));
        (void)MPIX_Comm_agree(MPI_COMM_WORLD, &ready);
    } while (size > 2);
    OK(MPI_Finalize());
    if (rank == 0) puts("no barrier has failed");
    return 0;
}
