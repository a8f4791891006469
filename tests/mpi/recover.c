// A job started with --enable-recovery continues when a rank dies: calls that involve the dead rank return an error, and the other ranks
// still exchange messages.
#include <mpi-ext.h>
#include <string.h>

#include "death.h"

enum { kLarge = 4 << 20 };

static void expect_failure(int code, const char* what) {
    int class;
    OK(MPI_Error_class(code, &class));
    EXPECT_INT(class, MPIX_ERR_PROC_FAILED);
    CHECK(code != MPI_SUCCESS, "%s a dead rank succeeded", what);
}

static void talk(int rank, int others) {
    // All ranks but the last, which is dead, pass messages around a ring.
    int value = rank, next = (rank + 1) % others, before = (rank + others - 1) % others;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, next, 3, &value, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(value, before);
}

int main(int argc, char** argv) {
    int rank, size, value = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const int doomed = size - 1;
    MPI_Request early;
    if (rank != doomed) OK(MPI_Irecv(&value, 1, MPI_INT, doomed, 9, MPI_COMM_WORLD, &early));
    kill_when_all_are_ready(MPI_COMM_WORLD, doomed);
    expect_failure(MPI_Wait(&early, MPI_STATUS_IGNORE), "receiving from");
    expect_failure(MPI_Recv(&value, 1, MPI_INT, doomed, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "receiving from");
    int flag, length;
    char text[MPI_MAX_ERROR_STRING];
    const int probed = MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    expect_failure(probed, "probing for messages of any rank and");
    OK(MPI_Error_string(probed, text, &length));
    CHECK(strstr(text, "a rank that could have sent the message has ended"), "the text is '%s'", text);
    static char large[kLarge];
    expect_failure(MPI_Ssend(large, kLarge, MPI_BYTE, doomed, 8, MPI_COMM_WORLD), "sending to");
    const int code = MPI_Barrier(MPI_COMM_WORLD);
    CHECK(code != MPI_SUCCESS, "a barrier with a dead rank succeeded");
    if (size > 2) talk(rank, size - 1);
    OK(MPI_Finalize());
    return 0;
}
