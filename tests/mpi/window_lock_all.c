// A shared lock by MPI_Win_lock_all excludes exclusive locks even before the first access by a call: direct loads and stores of a window's
// memory are accesses too (MPI 5.0, 12.5.3). Rank 0 requests an exclusive lock of a target while rank 1 is in the epoch, and must not get
// it before rank 1 has left.
#include <unistd.h>

#include "check.h"

static int rank;

static void keeps_out(MPI_Win win, int target, const char* what) {
    int flag = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) {
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
        for (int look = 0; look < 50 && !flag; ++look) {
            usleep(1000);
            OK(MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        }
        CHECK(!flag, "%s: an exclusive lock was acquired inside another rank's MPI_Win_lock_all epoch", what);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == 0) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Win_unlock(target, win));
    }
}

int main(int argc, char** argv) {
    long* memory;
    MPI_Win win;
    MPI_Aint bytes;
    int unit, provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    keeps_out(win, 1, "own memory");
    const int one_host = on_one_host();
    if (one_host) {
        if (rank == 1) OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &memory));
        keeps_out(win, 0, "memory from MPI_Win_shared_query");
    }
    OK(MPI_Win_free(&win));
    if (one_host) {
        OK(MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        keeps_out(win, 1, "own part of a shared window");
        keeps_out(win, 0, "another's part of a shared window");
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Finalize());
    return 0;
}
