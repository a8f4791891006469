// Rank 0 polls a flag by MPI_Rget and MPI_Wait until rank 1 sets it. Rank 1 sets it after an update of rank 0's memory that is sent as
// packets, so rank 0's loop must carry out that update.
#include "check.h"

int main(int argc, char** argv) {
    int rank;
    static long own[8];
    long *flag, seen = 0;
    const long one = 1;
    MPI_Win looked, updated;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &looked));
    OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &updated));
    *flag = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, looked));
    OK(MPI_Win_lock_all(0, updated));
    while (rank == 0 && !seen) {
        MPI_Request request;
        OK(MPI_Rget(&seen, 1, MPI_LONG, 1, 0, 1, MPI_LONG, looked, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (rank == 1) {
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, updated));
        OK(MPI_Win_flush(0, updated));
        OK(MPI_Put(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, looked));
        OK(MPI_Win_flush(1, looked));
    }
    OK(MPI_Win_unlock_all(updated));
    OK(MPI_Win_unlock_all(looked));
    EXPECT_INT(own[0], rank == 0);
    OK(MPI_Win_free(&updated));
    OK(MPI_Win_free(&looked));
    OK(MPI_Finalize());
    return 0;
}
