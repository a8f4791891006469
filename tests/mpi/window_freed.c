// Windows that come and go, whose locks everybody takes and gives back right before: nobody writes into memory that their maker has from
// MPI_Alloc_mem afterwards, where a window's locks were noted perhaps. Ranks of several hosts show most, in a build with delays
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
        // What others do late they have done when they are through here.
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(memcmp(mine, same, kBytes) == 0, "round %d: another process has written into this one's memory", round);
        OK(MPI_Free_mem(mine));
    }
    OK(MPI_Finalize());
    return 0;
}
