// A rank dies while another one polls its memory in an epoch of MPI_Win_lock_all (--enable-recovery). Every way of polling ends with an error.
#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

enum { kGet, kPut, kFetchAndOp, kCompareAndSwap, kStrided, kRequest, kKinds };

static MPI_Win win;
static MPI_Datatype strided;
static int doomed;

static int access_once(int kind) {
    int one = 1, none = 0, got[4] = {0};
    MPI_Request request;
    int code;
    switch (kind) {
        case kGet:
            return MPI_Get(got, 1, MPI_INT, doomed, 0, 1, MPI_INT, win);
        case kPut:
            return MPI_Put(&one, 1, MPI_INT, doomed, 0, 1, MPI_INT, win);
        case kFetchAndOp:
            return MPI_Fetch_and_op(&one, got, MPI_INT, doomed, 0, MPI_SUM, win);
        case kCompareAndSwap:
            return MPI_Compare_and_swap(&one, &none, got, MPI_INT, doomed, 0, win);
        case kStrided:
            return MPI_Get(got, 1, strided, doomed, 0, 1, strided, win);
        default:
            code = MPI_Rget(got, 1, MPI_INT, doomed, 0, 1, MPI_INT, win, &request);
            return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/// Polls as a program that waits for a value, which the dead rank would have written.
static int poll_until_error(int kind) {
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS) {
        code = access_once(kind);
        const int flushed = kind == kPut ? MPI_Win_flush_all(win) : MPI_Win_flush(doomed, win);
        if (code == MPI_SUCCESS) code = flushed;
    }
    return code;
}

int main(int argc, char** argv) {
    int rank, size, *memory;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int first = argc > 1 ? atoi(argv[1]) : kGet;
    doomed = size - 1;
    CHECK(size > 1, "needs 2 ranks");
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Win_allocate(4 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < 4; ++i) memory[i] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == doomed) {
        for (int i = 0; i < doomed; ++i) OK(MPI_Recv(NULL, 0, MPI_BYTE, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        raise(SIGKILL);
    }
    // The lock must be held before the death: otherwise the first access would fail, because a lock of a dead rank cannot be acquired.
    OK(MPI_Win_lock_all(0, win));
    OK(access_once(kFetchAndOp));
    OK(MPI_Win_flush(doomed, win));
    OK(MPI_Send(NULL, 0, MPI_BYTE, doomed, 3, MPI_COMM_WORLD));
    for (int i = 0; i < kKinds; ++i) {
        const int code = poll_until_error((first + i) % kKinds);
        EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
    }
    int mine = 0;
    OK(MPI_Get(&mine, 1, MPI_INT, rank, 0, 1, MPI_INT, win));  // the living ranks' memory is still accessible
    const int ended = MPI_Win_unlock_all(win);
    CHECK(ended == MPI_SUCCESS || class_of(ended) == MPIX_ERR_PROC_FAILED, "MPI_Win_unlock_all gave class %d", class_of(ended));
    int flag = 1;
    EXPECT_INT(class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag)), MPIX_ERR_PROC_FAILED);  // all have ended their epochs
    OK(MPIX_Win_revoke(win));
    OK(MPI_Win_free(&win));
    OK(MPI_Type_free(&strided));
    if (rank == 0) printf("every way of polling has ended\n");
    OK(MPI_Finalize());
    return 0;
}
