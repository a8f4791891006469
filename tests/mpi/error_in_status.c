// A call that completes several requests returns MPI_ERR_IN_STATUS if one has failed and there are statuses. The error handler gets the code
// of the failed request (MPI 5.0 section 9.3.1).
#include "check.h"

static MPI_Comm heard;
static int got, calls;
static void on_error(MPI_Comm* comm, int* code, ...) {
    heard = *comm, got = *code;
    calls++;
}

// Starts one receive that gets a message as long as its buffer, and one that gets a longer message.
static void start(MPI_Comm comm, MPI_Request requests[2]) {
    static const int values[2] = {1, 2};
    static int room[2];
    OK(MPI_Irecv(&room[0], 1, MPI_INT, 0, 1, comm, &requests[0]));
    OK(MPI_Irecv(&room[1], 1, MPI_INT, 0, 2, comm, &requests[1]));
    OK(MPI_Send(values, 1, MPI_INT, 0, 1, comm));
    OK(MPI_Send(values, 2, MPI_INT, 0, 2, comm));
    heard = MPI_COMM_NULL, got = MPI_SUCCESS, calls = 0;
}

static void expect(MPI_Comm comm, int code, const MPI_Status* status) {
    EXPECT_INT(code, MPI_ERR_IN_STATUS);
    EXPECT_INT(calls, 1);
    CHECK(heard == comm, "the wrong handler");
    EXPECT_INT(class_of(got), MPI_ERR_TRUNCATE);
    EXPECT_INT(got, status->MPI_ERROR);
}

int main(int argc, char** argv) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0, count = 0, indices[2];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    start(comm, requests);
    expect(comm, MPI_Waitall(2, requests, statuses), &statuses[1]);
    start(comm, requests);
    expect(comm, MPI_Testall(2, requests, &flag, statuses), &statuses[1]);
    EXPECT_INT(flag, 1);
    start(comm, requests);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    expect(comm, MPI_Waitsome(2, requests, &count, indices, statuses), &statuses[0]);
    EXPECT_INT(count, 1);
    start(comm, requests);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    expect(comm, MPI_Testsome(2, requests, &count, indices, statuses), &statuses[0]);
    EXPECT_INT(count, 1);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
