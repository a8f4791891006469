/* Creates more windows at a time than shared memory has slots for their barriers, and frees them in another order. Some creations in
 * between fail. A fence on each window must work, and freed slots must be reused. */
#include "check.h"

enum { kWindows = 400 };

static int rank, size;
static MPI_Win windows[kWindows];
static int memory[kWindows];

static void fails(MPI_Comm comm) {
    MPI_Win win = MPI_WIN_NULL;
    int code = MPI_Win_create(memory, rank == size - 1 ? -1 : 4, 4, MPI_INFO_NULL, comm, &win);
    EXPECT_INT(class_of(code), MPI_ERR_SIZE);
    void* base;
    code = rank == size - 1 ? MPI_Win_allocate(4, 4, MPI_INFO_NULL, comm, &base, &win)
                            : MPI_Win_create(memory, 4, 4, MPI_INFO_NULL, comm, &win);
    EXPECT_INT(class_of(code), size == 1 ? MPI_SUCCESS : MPI_ERR_RMA_FLAVOR);
    if (size == 1) OK(MPI_Win_free(&win));
}

static void put_round(int w, int value) {
    OK(MPI_Win_fence(0, windows[w]));
    OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, windows[w]));
    OK(MPI_Win_fence(0, windows[w]));
    EXPECT_INT(memory[w], (rank + size - 1) % size * 1000 + w);
}

static void make(MPI_Comm comm, int w) {
    memory[w] = -1;
    OK(MPI_Win_create(&memory[w], sizeof memory[w], sizeof memory[w], MPI_INFO_NULL, comm, &windows[w]));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int round = 0; round < 2; ++round) {
        for (int w = 0; w < kWindows; ++w) {
            if (w % 64 == round) fails(comm);
            make(comm, w);
        }
        for (int w = 0; w < kWindows; w += 7) put_round(w, rank * 1000 + w);
        /* Frees and recreates every second window, then frees all. */
        for (int w = 0; w < kWindows; w += 2) OK(MPI_Win_free(&windows[w]));
        for (int w = 0; w < kWindows; w += 2) make(comm, w);
        for (int w = kWindows - 1; w >= 0; w -= 3) put_round(w, rank * 1000 + w);
        for (int w = kWindows - 1; w >= 0; --w) OK(MPI_Win_free(&windows[w]));
    }
    /* A new communicator must still get a slot. */
    MPI_Comm after;
    OK(MPI_Comm_dup(comm, &after));
    OK(MPI_Comm_free(&comm));
    for (int i = 0, sum; i < 3; ++i) {
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, after));
        EXPECT_INT(sum, size * (size - 1) / 2);
    }
    OK(MPI_Comm_free(&after));
    OK(MPI_Finalize());
    return 0;
}
