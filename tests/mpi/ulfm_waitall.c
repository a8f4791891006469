// MPI_Waitall and MPI_Testall return after the failure of a process, although other requests cannot complete before the program has handled
// it: rank 1 sends to rank 0 only then. The other requests stay, and their statuses have MPI_ERR_PENDING (MPI 5.0 section 3.7.5).
#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

/// Waits in MPI_Waitall or MPI_Testall, with or without statuses. Returns the error.
static int wait_for(MPI_Request requests[3], MPI_Status* statuses, int testing) {
    int flag = 0, code = MPI_SUCCESS;
    if (!testing) return MPI_Waitall(3, requests, statuses);
    while (!flag && code == MPI_SUCCESS) code = MPI_Testall(3, requests, &flag, statuses);
    return code;
}

/// Rank 0 receives from ranks 1 and 2. `lost`: index of the receive from rank 2, which dies.
static void receive(int lost, int testing, int ignoring) {
    int word[3] = {0}, go = 1;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    const int living = lost == 0 ? 1 : 0;
    OK(MPI_Irecv(&word[lost], 1, MPI_INT, 2, 0, MPI_COMM_WORLD, &requests[lost]));
    OK(MPI_Irecv(&word[living], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[living]));
    requests[3 - lost - living] = MPI_REQUEST_NULL;
    const int code = wait_for(requests, ignoring ? MPI_STATUSES_IGNORE : statuses, testing);
    EXPECT_INT(class_of(code), ignoring ? MPIX_ERR_PROC_FAILED : MPI_ERR_IN_STATUS);
    if (!ignoring) {
        EXPECT_INT(class_of(statuses[lost].MPI_ERROR), MPIX_ERR_PROC_FAILED);
        EXPECT_INT(statuses[living].MPI_ERROR, MPI_ERR_PENDING);
        EXPECT_INT(statuses[3 - lost - living].MPI_ERROR, MPI_SUCCESS);
    }
    CHECK(requests[lost] == MPI_REQUEST_NULL, "the failed request is still there");
    CHECK(requests[living] != MPI_REQUEST_NULL, "the pending request is gone");
    OK(MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[living], MPI_STATUS_IGNORE));
    EXPECT_INT(word[living], 17);
}

int main(int argc, char** argv) {
    int rank, size, word = 17;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == 3, "the program needs 3 ranks, it has %d", size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const int rounds = 8;  // each way, before and after the death is known
    if (rank == 2) raise(SIGKILL);
    for (int round = 0; round < rounds; ++round) {
        if (rank == 0) {
            receive(round % 2 * 2, round / 2 % 2, round / 4);
        } else {
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            word = 17;
            OK(MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
        }
    }
    if (rank == 0) printf("all waits have ended\n");
    OK(MPI_Finalize());
    return 0;
}
