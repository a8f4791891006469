// A message longer than its receive returns MPI_ERR_TRUNCATE. Nothing is written beyond the buffer, and the next message is intact. In
// MPI_Waitall the other requests keep their own status.
#include "check.h"

static int rank, size;

static void blocking(int bytes, int room) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    char *out = malloc(bytes), *in = malloc(bytes + 64);
    MPI_Request request;
    MPI_Status status;
    fill_bytes(out, bytes, rank);
    memset(in, 0x55, bytes + 64);
    OK(MPI_Isend(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &request));
    EXPECT_ERROR(MPI_Recv(in, room, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    for (int i = room; i < bytes + 64; i++) CHECK(in[i] == 0x55, "byte %d of %d/%d overwritten", i, room, bytes);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Isend(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Recv(in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status));
    CHECK(first_wrong_byte(in, bytes, from) < 0, "the message after a truncated one differs");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(in);
    free(out);
}

static void posted_first(int bytes, int room) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, class;
    char *out = malloc(bytes), *in = malloc(bytes + 64), small = 0;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    memset(in, 0x55, bytes + 64);
    fill_bytes(out, bytes, rank);
    OK(MPI_Irecv(in, room, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&small, 1, MPI_BYTE, from, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isend(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Send("x", 1, MPI_BYTE, to, 2, MPI_COMM_WORLD));
    // MPI_Waitall may return early with MPI_ERR_PENDING for the others: wait until all are complete.
    int code = MPI_Waitall(3, requests, statuses);
    OK(MPI_Error_class(code, &class));
    EXPECT_INT(class, MPI_ERR_IN_STATUS);
    OK(MPI_Error_class(statuses[0].MPI_ERROR, &class));
    EXPECT_INT(class, MPI_ERR_TRUNCATE);
    for (int i = 1; i < 3; i++)
        CHECK(statuses[i].MPI_ERROR == MPI_SUCCESS || statuses[i].MPI_ERROR == MPI_ERR_PENDING, "%d", statuses[i].MPI_ERROR);
    OK(MPI_Waitall(3, requests, statuses));
    CHECK(small == 'x');
    for (int i = room; i < bytes + 64; i++) CHECK(in[i] == 0x55, "byte %d of %d/%d overwritten", i, room, bytes);
    free(in);
    free(out);
}

// Members that send longer blocks than they receive are in error; nothing may be written beyond their buffers.
static void longer_blocks(int bytes, int room) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Barrier(comm));  // only then the members know whether they share memory
    char *out = malloc(bytes), *in = malloc(size * room + bytes);
    fill_bytes(out, bytes, rank);
    memset(in, 0x55, size * room + bytes);
    int code = MPI_Allgather(out, bytes, MPI_BYTE, in, room, MPI_BYTE, comm), class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE || class == MPI_ERR_OTHER, "%d", class);
    for (int i = 0; i < bytes; i++) CHECK(in[size * room + i] == 0x55, "byte %d beyond the buffer, of %d/%d", i, room, bytes);
    free(in);
    free(out);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const int sizes[] = {2, 100, 5000, 100000, 1000000};
    for (int i = 0; i < 5; i++) {
        blocking(sizes[i], 0);
        blocking(sizes[i], sizes[i] / 2);
        blocking(sizes[i], sizes[i] - 1);
        posted_first(sizes[i], sizes[i] / 2);
        longer_blocks(sizes[i], sizes[i] / 8);
    }
    for (int room = 1000; room < 100000; room *= 2) longer_blocks(200000, room);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
