// Tests messages from a process to itself: every size, both orders of starting, wildcards, MPI_COMM_SELF, and collectives of one process.
#include "check.h"

static void pass(MPI_Comm comm, int rank, int bytes, int receive_first) {
    char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count;
    fill_bytes(out, bytes, bytes);
    if (receive_first) OK(MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]));
    OK(MPI_Isend(out, bytes, MPI_BYTE, rank, 3, comm, &requests[1]));
    if (!receive_first) OK(MPI_Irecv(in, bytes, MPI_BYTE, rank, 3, comm, &requests[0]));
    OK(MPI_Waitall(2, requests, statuses));
    EXPECT_INT(statuses[0].MPI_SOURCE, rank);
    EXPECT_INT(statuses[0].MPI_TAG, 3);
    OK(MPI_Get_count(&statuses[0], MPI_BYTE, &count));
    EXPECT_INT(count, bytes);
    CHECK(first_wrong_byte(in, bytes, bytes) < 0, "%d bytes", bytes);
    free(in);
    free(out);
}

// Transposes a matrix: send and receive use types with equal signatures but different layouts.
static void reshape(int rank) {
    int matrix[16][16], transposed[16][16];
    MPI_Datatype column, columns;
    OK(MPI_Type_vector(16, 1, 16, MPI_INT, &column));
    OK(MPI_Type_create_hvector(16, 1, sizeof(int), column, &columns));
    OK(MPI_Type_commit(&columns));
    for (int i = 0; i < 256; i++) matrix[i / 16][i % 16] = i;
    OK(MPI_Sendrecv(matrix, 256, MPI_INT, rank, 1, transposed, 1, columns, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 256; i++) EXPECT_INT(transposed[i % 16][i / 16], i);
    OK(MPI_Type_free(&columns));
    OK(MPI_Type_free(&column));
}

int main(int argc, char** argv) {
    int rank, value, in;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    const int sizes[] = {0, 1, 64, 1000, 10000, 100000, 5000000};
    for (int i = 0; i < 7; i++)
        for (int first = 0; first < 2; first++) {
            pass(MPI_COMM_WORLD, rank, sizes[i], first);
            pass(MPI_COMM_SELF, 0, sizes[i], first);
        }
    reshape(rank);
    for (value = 0; value < 1000; value++) {
        MPI_Request request;
        OK(MPI_Isend(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
        OK(MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        EXPECT_INT(in, value);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Allreduce(&rank, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    EXPECT_INT(in, rank);
    OK(MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_SELF));
    OK(MPI_Barrier(MPI_COMM_SELF));
    OK(MPI_Alltoall(&rank, 1, MPI_INT, &in, 1, MPI_INT, MPI_COMM_SELF));
    EXPECT_INT(in, rank);
    OK(MPI_Finalize());
    return 0;
}
