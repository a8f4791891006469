// Messages of 64 MB: contiguous and strided, to one rank and in both directions at once.
#include "check.h"

enum { kBytes = 64 << 20 };

int main(int argc, char** argv) {
    int rank, size, count;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int peer = rank ^ 1;
    if (peer < size && rank < 2) {
        uint64_t* out = malloc(kBytes);
        uint64_t* in = malloc(kBytes);
        size_t n = kBytes / sizeof *out;
        for (size_t i = 0; i < n; i++) out[i] = i * 3 + rank;
        memset(in, 0, kBytes);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        OK(MPI_Irecv(in, (int)n, MPI_UINT64_T, peer, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, (int)n, MPI_UINT64_T, peer, 1, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
        OK(MPI_Get_count(&statuses[0], MPI_UINT64_T, &count));
        EXPECT_INT(count, n);
        for (size_t i = 0; i < n; i++) CHECK(in[i] == i * 3 + peer, "word %zu", i);

        // Sends every other word of a buffer into a contiguous buffer of half the length. One of the two ranks receives the message as
        // unexpected.
        MPI_Datatype strided;
        OK(MPI_Type_vector((int)(n / 2), 1, 2, MPI_UINT64_T, &strided));
        OK(MPI_Type_commit(&strided));
        memset(in, 0, kBytes / 2);
        if (rank == 0) {
            OK(MPI_Send(out, 1, strided, peer, 2, MPI_COMM_WORLD));
            OK(MPI_Recv(in, 1, strided, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (size_t i = 0; i < n / 2; i++) CHECK(in[2 * i] == i * 3 + peer, "word %zu", i);
        } else {
            OK(MPI_Recv(in, (int)(n / 2), MPI_UINT64_T, peer, 2, MPI_COMM_WORLD, &statuses[0]));
            OK(MPI_Get_count(&statuses[0], MPI_UINT64_T, &count));
            EXPECT_INT(count, n / 2);
            for (size_t i = 0; i < n / 2; i++) CHECK(in[i] == 2 * i * 3 + peer, "word %zu", i);
            OK(MPI_Send(out, (int)(n / 2), MPI_UINT64_T, peer, 2, MPI_COMM_WORLD));
        }
        OK(MPI_Type_free(&strided));
        free(in);
        free(out);
    }
    // Broadcasts 16 MB from the last rank.
    char* data = malloc(kBytes / 4);
    if (rank == size - 1) fill_bytes(data, kBytes / 4, 5);
    OK(MPI_Bcast(data, kBytes / 4, MPI_BYTE, size - 1, MPI_COMM_WORLD));
    CHECK(first_wrong_byte(data, kBytes / 4, 5) < 0);
    free(data);
    OK(MPI_Finalize());
    return 0;
}
