// Tests MPI_Cancel of receives: before a match it succeeds, and a later receive gets the message; after a match the receive completes as
// usual.
#include "check.h"

int main(int argc, char** argv) {
    int rank, size, cancelled, count, value = 0, other = 0;
    MPI_Request request, second;
    MPI_Status status;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int to = (rank + 1) % size, from = (rank + size - 1) % size;

    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request));
    OK(MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &second));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 1);
    CHECK(request == MPI_REQUEST_NULL);

    OK(MPI_Barrier(MPI_COMM_WORLD));
    int mine = 1000 + rank;
    OK(MPI_Send(&mine, 1, MPI_INT, to, 7, MPI_COMM_WORLD));
    OK(MPI_Wait(&second, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EXPECT_INT(count, 1);
    EXPECT_INT(other, 1000 + from);
    EXPECT_INT(value, 0);

    // A matched receive cannot be cancelled. The synchronous send to this process itself completes only after the match.
    MPI_Request send;
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &request));
    OK(MPI_Issend(&mine, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    EXPECT_INT(value, mine);

    // A cancelled persistent receive can be started again.
    OK(MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 1);
    CHECK(request != MPI_REQUEST_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Start(&request));
    mine = 77 + rank;
    OK(MPI_Send(&mine, 1, MPI_INT, to, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    EXPECT_INT(value, 77 + from);
    OK(MPI_Request_free(&request));

    // Cancels many receives in an order other than the one in which they were posted: all must be cancelled.
    enum { kMany = 200 };
    MPI_Request many[kMany];
    int sink[kMany];
    for (int i = 0; i < kMany; i++) OK(MPI_Irecv(&sink[i], 1, MPI_INT, from, 100 + i % 3, MPI_COMM_WORLD, &many[i]));
    for (int i = 0; i < kMany; i++) OK(MPI_Cancel(&many[(i * 37) % kMany]));
    MPI_Status statuses[kMany];
    OK(MPI_Waitall(kMany, many, statuses));
    for (int i = 0; i < kMany; i++) {
        OK(MPI_Test_cancelled(&statuses[i], &cancelled));
        EXPECT_INT(cancelled, 1);
    }
    OK(MPI_Finalize());
    return 0;
}
