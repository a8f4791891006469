// Three ranks, the last on another host. It requests the lock of rank 0, which computes, while rank 1 acquires and releases that lock
// repeatedly. Each request must wake rank 0's thread for other hosts, so that the last rank soon gets its turn. A thread that only polled
// periodically would let rank 1 get the lock dozens of times meanwhile.
#include <unistd.h>

#include "check.h"

enum { kRounds = 11, kMostTimes = 10, kTries = 10 };

static int rank, size;
static long* memory;
static MPI_Win win;

/// Computes, without calls that make progress, until the last rank sets the flag.
static void compute(void) {
    while (*(volatile long*)memory == 0) usleep(200);
}

/// Acquires and releases the lock until the last rank has had it. Returns the number of times.
static int take_again_and_again(void) {
    int times = 0, had = 0;
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (; !had; times++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        usleep(3000);
        OK(MPI_Win_unlock(0, win));
        usleep(1000);
        OK(MPI_Iprobe(2, 1, MPI_COMM_WORLD, &had, MPI_STATUS_IGNORE));
    }
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return times;
}

static int by_number(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

/// Returns how often rank 1 has had the lock in the median of some rounds. A round takes long if rank 0 gets no core.
static int median_times(void) {
    int times[kRounds];
    for (int i = 0; i < kRounds; i++) times[i] = take_again_and_again();
    qsort(times, kRounds, sizeof *times, by_number);
    return times[kRounds / 2];
}

static void want(void) {
    OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    usleep(2000);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    EXPECT_INT(size, 3);
    OK(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    *memory = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int times = kMostTimes;
    if (rank == 0) compute();
    for (int i = 0; i < kTries && times >= kMostTimes && rank > 0; i++) {
        if (rank == 1) times = median_times();
        for (int round = 0; round < kRounds && rank == 2; round++) want();
        if (rank == 1) OK(MPI_Send(&times, 1, MPI_INT, 2, 2, MPI_COMM_WORLD));
        if (rank == 2) OK(MPI_Recv(&times, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    CHECK(rank == 0 || times < kMostTimes, "rank 1 had the lock %d times until rank 2 had it", times);
    if (rank == 2) {
        const long over = 1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Put(&over, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    if (rank == 1) printf("rank 1 had it %d times\n", times);
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
