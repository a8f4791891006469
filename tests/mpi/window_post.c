// MPI_Win_post must not block (MPI 5.0, 12.5.2), although the other process receives nothing until the call has returned. Rank 1 first
// fills its path to that process, and reports in shared memory when MPI_Win_post has returned.
#include <sched.h>

#include "check.h"

enum { kMessages = 400, kBytes = 512 };

int main(int argc, char** argv) {
    static char data[kMessages][kBytes], in[kBytes];
    MPI_Request requests[kMessages];
    int rank;
    volatile int *flag, *mine;
    void* base;
    MPI_Win win, flags;
    MPI_Aint bytes;
    int unit;
    MPI_Group world, other;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (!on_one_host()) {  // the test needs shared memory for its flag
        OK(MPI_Finalize());
        return 0;
    }
    OK(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&mine, &flags));
    *mine = 0;
    OK(MPI_Win_shared_query(flags, 1, &bytes, &unit, (void*)&flag));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    const int peer = 1 - rank;
    OK(MPI_Group_incl(world, 1, &peer, &other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 1; round <= 3; ++round) {
        if (rank == 1) {
            for (int i = 0; i < kMessages; ++i) OK(MPI_Isend(data[i], kBytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[i]));
            OK(MPI_Win_post(other, 0, win));
            *flag = round;
            OK(MPI_Win_wait(win));
            OK(MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE));
        } else {
            while (*flag < round) sched_yield();
            OK(MPI_Win_start(other, 0, win));
            OK(MPI_Win_complete(win));
            for (int i = 0; i < kMessages; ++i) OK(MPI_Recv(in, kBytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&flags));
    OK(MPI_Finalize());
    return 0;
}
