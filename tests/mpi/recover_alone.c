// In a job with --enable-recovery one rank dies, and another ends as soon as it learns of that. The remaining rank keeps calling
// collectives on MPI_COMM_WORLD: each must return an error, although no process receives its messages any more.
#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

enum { kCalls = 3000 };

int main(int argc, char** argv) {
    int rank, value = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Comm comm, used, other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &used));
    for (int i = 0; i < 3; i++) OK(MPI_Barrier(used));
    MPI_Barrier(MPI_COMM_WORLD);  // may fail: rank 2 may die while other ranks are still in the barrier
    if (rank == 2) raise(SIGKILL);
    EXPECT_INT(class_of(MPI_Recv(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    for (int i = 0; i < kCalls && rank == 0; i++) {
        EXPECT_INT(class_of(MPI_Barrier(used)), MPIX_ERR_PROC_FAILED);
        EXPECT_INT(class_of(MPI_Comm_dup(MPI_COMM_WORLD, &other)), MPIX_ERR_PROC_FAILED);
        EXPECT_INT(class_of(MPI_Bcast(&value, 1, MPI_INT, 0, comm)), MPIX_ERR_PROC_FAILED);
    }
    if (rank == 0) puts("every call has ended");
    OK(MPI_Finalize());
    return 0;
}
