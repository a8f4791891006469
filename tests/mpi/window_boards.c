// The shared memory with a window's lock table must exist as long as any process of its host writes to it. A lock release from another host
// travels in a separate message, and a slow target may process it after the barrier of MPI_Win_free. Here rank 1 is stopped while the last
// rank releases its lock of it. Memory that rank 0 then allocates must stay intact.
//
// Ranks 0 and 1 must be on one host and the last rank on another; otherwise the program tests little.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kRounds = 20, kBytes = 300, kFill = 0x11 };

int main(int argc, char** argv) {
    int rank, size, pid = (int)getpid();
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int last = size - 1;
    OK(MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD));
    for (int round = 0; round < kRounds; ++round) {
        long* memory;
        MPI_Win win;
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        if (rank == last) OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) {
            usleep(10000);  // waits until rank 1 is in MPI_Win_free
            kill(pid, SIGSTOP);
            OK(MPI_Send(NULL, 0, MPI_BYTE, last, 0, MPI_COMM_WORLD));
            // Continues rank 1 even if rank 0 blocks.
            const pid_t helper = fork();
            if (helper == 0) {
                usleep(10000);
                kill(pid, SIGCONT);
                _exit(0);
            }
        }
        if (rank == last) {
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Win_unlock(1, win));
        }
        OK(MPI_Win_free(&win));
        if (rank == 0) {
            unsigned char *mine, same[kBytes];
            OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &mine));
            memset(mine, kFill, kBytes);
            memset(same, kFill, kBytes);
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(memcmp(mine, same, kBytes) == 0, "round %d: another process has written into this one's memory", round);
            OK(MPI_Free_mem(mine));
        }
        if (rank == 1) OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
    OK(MPI_Finalize());
    return 0;
}
