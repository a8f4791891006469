// Ranks are killed in every state of a window's lock, and the job continues (--enable-recovery). The others must get the lock that the dead
// rank held, and an error from accesses to the dead target.
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { kHoldsExclusive, kHoldsShared, kWaits, kHoldsAll, kStates };

static MPI_Win win;
static int rank, size, doomed;

/// Runs on the doomed rank: enters the given lock state, notifies rank 0, and dies.
static void die_in(int state) {
    const int one = 1;
    if (state == kHoldsAll) {
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
    } else if (state != kWaits) {
        OK(MPI_Win_lock(state == kHoldsShared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win));
    }
    OK(MPI_Send(&state, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    // Rank 0 holds the lock that this call waits for, and kills this rank meanwhile.
    if (state == kWaits) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    CHECK(state != kWaits, "this rank acquired a lock that rank 0 holds");
    raise(SIGKILL);
}

int main(int argc, char** argv) {
    int pid = 0, state, *memory;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    state = argc > 1 ? atoi(argv[1]) : kHoldsExclusive;
    doomed = size - 1;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    *memory = 0;
    pid = (int)getpid();
    OK(MPI_Bcast(&pid, 1, MPI_INT, doomed, MPI_COMM_WORLD));
    if (rank == 0 && state == kWaits) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == doomed) die_in(state);
    if (rank == 0) {
        OK(MPI_Recv(&state, 1, MPI_INT, doomed, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (state == kWaits) {
            usleep(20000);
            kill(pid, SIGKILL);
            OK(MPI_Win_unlock(0, win));
        }
    }
    // All others acquire the lock, one after the other.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    int value = -1;
    OK(MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(0, win));
    ++value;
    OK(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(0, win));
    int sum = 0, last = rank;
    for (int other = 0; rank == 0 && other < size - 2; ++other)
        OK(MPI_Recv(&last, 1, MPI_INT, other + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank != 0) OK(MPI_Send(&last, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        sum = *memory;
        OK(MPI_Win_unlock(0, win));
        EXPECT_INT(sum, size - 1 + (state == kHoldsAll));
    }
    // Locking the dead rank must fail in the end.
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS) {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, doomed, 0, win);
        if (code == MPI_SUCCESS) code = MPI_Win_unlock(doomed, win);
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Win_free(&win)), MPIX_ERR_PROC_FAILED);
    if (rank == 0) printf("every lock was had after rank %d's death\n", doomed);
    OK(MPI_Finalize());
    return 0;
}
