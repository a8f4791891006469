// Tests MPI_Sendrecv and its variants around a ring, with MPI_PROC_NULL at the ends of a line, and from a process to itself.
#include "check.h"

static int rank, size;

static void ring(int n) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, count;
    char *out = malloc(n + 1), *in = malloc(n + 1);
    MPI_Status status;
    fill_bytes(out, n, rank);
    OK(MPI_Sendrecv(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, from);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, n);
    CHECK(first_wrong_byte(in, n, from) < 0, "Sendrecv %d", n);
    OK(MPI_Sendrecv_replace(out, n, MPI_BYTE, to, 2, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, from);
    CHECK(first_wrong_byte(out, n, from) < 0, "Sendrecv_replace %d", n);
#if MPI_AT_LEAST(4, 0)
    MPI_Request request;
    OK(MPI_Isendrecv(in, n, MPI_BYTE, from, 3, out, n, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(first_wrong_byte(out, n, rank) < 0, "Isendrecv %d", n);
    OK(MPI_Isendrecv_replace(out, n, MPI_BYTE, to, 4, from, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(first_wrong_byte(out, n, from) < 0, "Isendrecv_replace %d", n);
#endif
    free(in);
    free(out);
}

static void line(void) {
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int out = rank, in = -5, count;
    MPI_Status status;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, left);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    if (left == MPI_PROC_NULL) {
        EXPECT_INT(in, -5);
        EXPECT_INT(status.MPI_TAG, MPI_ANY_TAG);
        EXPECT_INT(count, 0);
    } else {
        EXPECT_INT(in, left);
        EXPECT_INT(count, 1);
    }
    MPI_Request requests[2];
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
    MPI_Status statuses[2];
    OK(MPI_Waitall(2, requests, statuses));
    EXPECT_INT(statuses[0].MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Ssend(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
}

static void replace_derived(void) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, data[300];
    MPI_Datatype every_third;
    OK(MPI_Type_vector(100, 1, 3, MPI_INT, &every_third));
    OK(MPI_Type_commit(&every_third));
    for (int i = 0; i < 300; i++) data[i] = rank * 1000 + i;
    OK(MPI_Sendrecv_replace(data, 1, every_third, to, 1, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 300; i++) EXPECT_INT(data[i], (i % 3 ? rank : from) * 1000 + i);
    OK(MPI_Type_free(&every_third));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int sizes[] = {0, 1, 100, 3000, 20000, 150000, 3000000};
    for (int i = 0; i < 7; i++) ring(sizes[i]);
    line();
    replace_derived();
    OK(MPI_Finalize());
    return 0;
}
