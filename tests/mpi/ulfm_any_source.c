// A rank dies while others receive from MPI_ANY_SOURCE. A blocking receive fails; a non-blocking one is pending until the failure is
// acknowledged, keeps its place in the order of receives, and then gets its message.
#include "await_failure.h"
#include "death.h"

static int rank, size;

static void expect_class(int code, int wanted, const char* what) {
    CHECK(class_of(code) == wanted, "%s gave class %d, not %d", what, class_of(code), wanted);
}

static void receive(MPI_Comm comm) {
    int value[4] = {0}, flag, acked, index, count, indices[2];
    MPI_Request requests[4], persistent, freed, cancelled;
    MPI_Status status, statuses[4];
    OK(MPI_Irecv(&value[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &requests[0]));
    OK(MPI_Irecv(&value[1], 1, MPI_INT, 0, 1, comm, &requests[1]));
    await_failure(comm);
    OK(MPI_Irecv(&value[2], 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[2]));
    OK(MPI_Recv_init(&value[3], 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &persistent));
    OK(MPI_Start(&persistent));
    OK(MPI_Irecv(&acked, 1, MPI_INT, MPI_ANY_SOURCE, 8, comm, &freed));
    OK(MPI_Irecv(&acked, 1, MPI_INT, MPI_ANY_SOURCE, 8, comm, &cancelled));
    expect_class(MPI_Recv(&acked, 1, MPI_INT, MPI_ANY_SOURCE, 9, comm, &status), MPIX_ERR_PROC_FAILED, "a blocking receive");
    for (int i = 0; i < 2; ++i) {
        expect_class(MPI_Wait(&requests[0], &status), MPIX_ERR_PROC_FAILED_PENDING, "MPI_Wait");
        expect_class(MPI_Test(&requests[2], &flag, &status), MPIX_ERR_PROC_FAILED_PENDING, "MPI_Test");
        expect_class(MPI_Wait(&persistent, &status), MPIX_ERR_PROC_FAILED_PENDING, "MPI_Wait of a persistent receive");
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL, "a pending request was freed");
    }
    expect_class(MPI_Waitany(1, &requests[2], &index, &status), MPIX_ERR_PROC_FAILED_PENDING, "MPI_Waitany");
    EXPECT_INT(index, 0);
    EXPECT_INT(MPI_Waitsome(1, &requests[2], &count, indices, statuses), MPI_ERR_IN_STATUS);
    EXPECT_INT(count, 1);
    expect_class(statuses[0].MPI_ERROR, MPIX_ERR_PROC_FAILED_PENDING, "MPI_Waitsome");
    OK(MPI_Request_free(&freed));
    OK(MPI_Cancel(&cancelled));
    OK(MPI_Wait(&cancelled, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    EXPECT_INT(flag, 1);
    // A message that arrives before the acknowledgment is received.
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 4, comm));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 5, comm, &status));
    OK(MPI_Wait(&requests[0], &status));
    EXPECT_INT(value[0], 10);
    OK(MPI_Wait(&requests[1], &status));
    EXPECT_INT(value[1], 11);
    OK(MPIX_Comm_ack_failed(comm, 0, &acked));
    EXPECT_INT(acked, 0);
    OK(MPIX_Comm_ack_failed(comm, size, &acked));
    EXPECT_INT(acked, 1);
    OK(MPI_Test(&requests[2], &flag, &status));
    EXPECT_INT(flag, 0);
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 4, comm));
    OK(MPI_Wait(&requests[2], &status));
    EXPECT_INT(value[2], 12);
    OK(MPI_Wait(&persistent, &status));
    EXPECT_INT(value[3], 13);
    OK(MPI_Recv(&value[0], 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, &status));
    EXPECT_INT(status.MPI_SOURCE, 0);
    expect_class(MPI_Recv(&value[0], 1, MPI_INT, size - 1, 6, comm, &status), MPIX_ERR_PROC_FAILED,
                 "a receive from the dead rank");
    OK(MPI_Request_free(&persistent));
}

static void send_to(int other, MPI_Comm comm) {
    const int numbers[] = {10, 11, 12, 13, 14, 15};
    OK(MPI_Recv(NULL, 0, MPI_INT, other, 4, comm, MPI_STATUS_IGNORE));
    OK(MPI_Send(&numbers[0], 1, MPI_INT, other, 1, comm));
    OK(MPI_Send(&numbers[1], 1, MPI_INT, other, 1, comm));
    OK(MPI_Send(&numbers[4], 1, MPI_INT, other, 8, comm));
    OK(MPI_Send(NULL, 0, MPI_INT, other, 5, comm));
    OK(MPI_Recv(NULL, 0, MPI_INT, other, 4, comm, MPI_STATUS_IGNORE));
    OK(MPI_Ssend(&numbers[2], 1, MPI_INT, other, 2, comm));
    OK(MPI_Send(&numbers[3], 1, MPI_INT, other, 3, comm));
    OK(MPI_Send(&numbers[5], 1, MPI_INT, other, 6, comm));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size > 2, "needs 3 ranks");
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    kill_when_all_are_ready(MPI_COMM_WORLD, size - 1);
    if (rank == 1) receive(comm);
    if (rank == 0) send_to(1, comm);
    if (rank == 1) puts("every receive went on");
    OK(MPI_Finalize());
    return 0;
}
