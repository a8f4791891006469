// Tests persistent requests: start, startall, restart with new data, inactive requests that complete at once, free while active.
#include "check.h"

enum { kRounds = 20, kPerPeer = 3 };

int main(int argc, char** argv) {
    int rank, size, flag, index, count;
    MPI_Status status;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int bytes[kPerPeer] = {16, 6000, 200000};
    int n = size * kPerPeer;
    MPI_Request* requests = malloc(2 * n * sizeof *requests);
    char** in = malloc(n * sizeof *in);
    char** out = malloc(n * sizeof *out);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < kPerPeer; k++) {
            int i = peer * kPerPeer + k;
            in[i] = malloc(bytes[k]);
            out[i] = malloc(bytes[k]);
            OK(MPI_Recv_init(in[i], bytes[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[i]));
            if (k == 1)
                OK(MPI_Ssend_init(out[i], bytes[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n + i]));
            else
                OK(MPI_Send_init(out[i], bytes[k], MPI_BYTE, peer, k, MPI_COMM_WORLD, &requests[n + i]));
        }
    OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));  // the requests are inactive, so the call completes at once
    OK(MPI_Test(&requests[0], &flag, &status));
    EXPECT_INT(flag, 1);
    EXPECT_INT(status.MPI_SOURCE, MPI_ANY_SOURCE);
    EXPECT_INT(status.MPI_TAG, MPI_ANY_TAG);
    OK(MPI_Waitany(2 * n, requests, &index, &status));
    EXPECT_INT(index, MPI_UNDEFINED);
    int rounds = size > 8 ? 4 : kRounds;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) fill_bytes(out[i], bytes[i % kPerPeer], rank + 31 * round + i);
        if (round % 2) {
            OK(MPI_Startall(2 * n, requests));
        } else {
            for (int i = 2 * n - 1; i >= 0; i--) OK(MPI_Start(&requests[i]));
        }
        OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; i++) {
            int k = i % kPerPeer, peer = i / kPerPeer;
            CHECK(requests[i] != MPI_REQUEST_NULL, "a persistent request must survive completion");
            long wrong = first_wrong_byte(in[i], bytes[k], peer + 31 * round + rank * kPerPeer + k);
            CHECK(wrong < 0, "round %d from %d, %d bytes: byte %ld", round, peer, bytes[k], wrong);
        }
    }
    for (int i = 0; i < 2 * n; i++) {
        OK(MPI_Request_free(&requests[i]));
        CHECK(requests[i] == MPI_REQUEST_NULL);
    }

    // Receives a message shorter than the persistent receive's buffer, then frees an active receive.
    int value[4] = {0}, mine = rank;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request receive, send;
    OK(MPI_Recv_init(value, 4, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &receive));
    OK(MPI_Start(&receive));
    OK(MPI_Send(&mine, 1, MPI_INT, to, 50, MPI_COMM_WORLD));
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EXPECT_INT(count, 1);
    EXPECT_INT(value[0], from);
    OK(MPI_Request_free(&receive));
    OK(MPI_Send_init(&mine, 1, MPI_INT, to, 51, MPI_COMM_WORLD, &send));
    OK(MPI_Start(&send));
    OK(MPI_Request_free(&send));
    OK(MPI_Recv(value, 1, MPI_INT, from, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(value[0], from);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < n; i++) {
        free(in[i]);
        free(out[i]);
    }
    free(in);
    free(out);
    free(requests);
    OK(MPI_Finalize());
    return 0;
}
