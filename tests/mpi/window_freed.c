// Windows are created and freed, and all ranks lock and unlock them right before. No process may write to memory that the creator then gets
// from MPI_Alloc_mem, where a window's lock table may have been. Most revealing with ranks on several hosts and a build with delays
// (src/base/delay.h).
#include "check.h"

enum { kRounds = 100, kBytes = 300, kFill = 0x11 };

int main(int argc, char** argv) {
    int rank, size;
    unsigned char *mine, same[kBytes];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    memset(same, kFill, kBytes);
    for (int round = 0; round < kRounds; round++) {
        long* memory;
        MPI_Win win;
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        for (int to = 0; to < size; to++) {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
            OK(MPI_Win_unlock(to, win));
        }
        OK(MPI_Win_free(&win));
        OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &mine));
        memset(mine, kFill, kBytes);
        // After this barrier all late writes of the others are done.
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(memcmp(mine, same, kBytes) == 0, "round %d: another process has written into this one's memory", round);
        OK(MPI_Free_mem(mine));
    }
    OK(MPI_Finalize());
    return 0;
}
