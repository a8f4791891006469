// A synchronous send must not complete before its receive has started; a standard one of few bytes may.
#include <unistd.h>

#include "check.h"

static void check_size(int rank, int bytes) {
    char* data = calloc(1, bytes + 1);
    MPI_Request request;
    int done;
    if (rank == 0) {
        OK(MPI_Issend(data, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request));
        for (int i = 0; i < 20; i++) {
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(!done, "%d bytes: the send completed without a receive", bytes);
            usleep(500);
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(data, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    free(data);
}

int main(int argc, char** argv) {
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    const int sizes[] = {0, 1, 64, 5000, 100000, 2000000};
    for (int i = 0; i < 6; i++) check_size(rank, sizes[i]);
    OK(MPI_Finalize());
    return 0;
}
