// Not a test by itself: rank 1 (rank 0 in a job of one process) ends the job with the given exit code while the other ranks wait. It does
// so from its main thread or from another thread. The fault tests check the launcher's output.
#include <unistd.h>

#include <thread>

#include "check.h"

int main(int argc, char** argv) {
    int rank, size, provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int code = argc > 1 ? atoi(argv[1]) : 1;
    if (rank == (size > 1)) {
        usleep(20000);
        if (argc > 2)
            std::thread([code] { MPI_Abort(MPI_COMM_WORLD, code); }).join();
        else
            MPI_Abort(MPI_COMM_WORLD, code);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
