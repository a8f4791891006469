// The codes of failed processes and revoked communicators are their classes, so that programs may compare them. Their text still names the
// call and the cause. Also: the error handler gets these codes from MPI_Waitall, and the names without X.
#include <mpi-ext.h>

#include "death.h"

static void expect_text(int code, const char* part) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, part), "'%s' is not in '%s'", part, text);
}

static int heard;
static void on_error(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    heard = *code;
}

static void survive(MPI_Comm comm, int dead, MPI_Comm left) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Errhandler handler;
    int value = 0, any = 0;
    EXPECT_INT(MPI_Barrier(comm), MPI_ERR_PROC_FAILED);
    expect_text(MPIX_ERR_PROC_FAILED, "MPI_Barrier");
    EXPECT_INT(MPI_Recv(&value, 1, MPI_INT, dead, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    expect_text(MPIX_ERR_PROC_FAILED, "MPI_Recv");
    OK(MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[0]));
    EXPECT_INT(MPI_Wait(&requests[0], &statuses[0]), MPI_ERR_PROC_FAILED_PENDING);
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPIX_Comm_failure_ack(comm));
    OK(MPI_Irecv(&value, 1, MPI_INT, dead, 1, comm, &requests[1]));
    OK(MPI_Cancel(&requests[0]));
    EXPECT_INT(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    EXPECT_INT(statuses[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    EXPECT_INT(heard, MPIX_ERR_PROC_FAILED);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Barrier(left));  // before, the others expect other errors
    OK(MPIX_Comm_revoke(comm));
    EXPECT_INT(MPI_Send(&value, 1, MPI_INT, 0, 1, comm), MPI_ERR_REVOKED);
    EXPECT_INT(heard, MPIX_ERR_REVOKED);
    expect_text(MPIX_ERR_REVOKED, "MPI_Send");
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Comm comm, left;
    OK(MPI_Init(&argc, &argv));
    expect_text(MPIX_ERR_PROC_FAILED, "A process that the operation needs has failed");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    kill_when_all_are_ready(MPI_COMM_WORLD, size - 1);
    OK(MPIX_Comm_shrink(comm, &left));
    survive(comm, size - 1, left);
    OK(MPI_Comm_free(&left));
    OK(MPI_Comm_free(&comm));
    if (rank == 0) puts("all codes were classes");
    OK(MPI_Finalize());
    return 0;
}
