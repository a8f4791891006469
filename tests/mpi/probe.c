// Tests probes: blocking and not, with wildcards, counts before the receive, matched probes that remove a message from matching,
// MPI_PROC_NULL.
#include "check.h"

static int rank, size;

static void wildcard_gather(void) {
    int value, flag, count;
    MPI_Status status, again;
    if (rank != 0) {
        for (int i = 0; i < 5; i++) {
            value = rank * 100 + i;
            OK(MPI_Send(&value, 1, MPI_INT, 0, 10 + i, MPI_COMM_WORLD));
        }
        return;
    }
    int* seen = calloc(size, sizeof *seen);
    for (int i = 0; i < 5 * (size - 1); i++) {
        OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        EXPECT_INT(count, 1);
        OK(MPI_Iprobe(status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &flag, &again));
        CHECK(flag, "a probed message must still be there");
        OK(MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &again));
        EXPECT_INT(value, status.MPI_SOURCE * 100 + status.MPI_TAG - 10);
        EXPECT_INT(status.MPI_TAG - 10, seen[status.MPI_SOURCE]);  // messages of one sender arrive in the order of sending
        seen[status.MPI_SOURCE]++;
    }
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
    free(seen);
}

static void unknown_length(int bytes) {
    int peer = rank ^ 1, count;
    if (peer >= size) return;
    char* data = malloc(bytes + 1);
    MPI_Request request;
    MPI_Status status;
    fill_bytes(data, bytes, rank);
    OK(MPI_Isend(data, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Probe(peer, 3, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, bytes);
    char* in = malloc(count + 1);
    OK(MPI_Recv(in, count, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(first_wrong_byte(in, count, peer) < 0, "%d bytes", bytes);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(in);
    free(data);
}

// No other receive can get a message that MPI_Mprobe returned, but the next message with the same tag can be received.
static void matched(int bytes) {
    int peer = rank ^ 1, flag, count;
    if (peer >= size) return;
    char *first = malloc(bytes + 1), *second = malloc(bytes + 1), *in = malloc(bytes + 1);
    MPI_Request requests[2], receive;
    MPI_Message message;
    MPI_Status status;
    fill_bytes(first, bytes, 1);
    fill_bytes(second, bytes, 2);
    OK(MPI_Isend(first, bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(second, bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status));
    EXPECT_INT(status.MPI_SOURCE, peer);
    CHECK(message != MPI_MESSAGE_NULL);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, bytes);
    OK(MPI_Recv(in, bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(first_wrong_byte(in, bytes, 2) < 0, "%d bytes: the receive got the probed message", bytes);
    OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK(first_wrong_byte(in, bytes, 1) < 0, "%d bytes: MPI_Mrecv received a message other than the probed one", bytes);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));

    OK(MPI_Isend(first, bytes, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &requests[0]));
    do { OK(MPI_Improbe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status)); } while (!flag);
    EXPECT_INT(status.MPI_TAG, 5);
    memset(in, 0, bytes);
    OK(MPI_Imrecv(in, bytes, MPI_BYTE, &message, &receive));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&receive, &status));
    EXPECT_INT(status.MPI_SOURCE, peer);
    EXPECT_INT(status.MPI_TAG, 5);
    CHECK(first_wrong_byte(in, bytes, 1) < 0, "%d bytes: Imrecv", bytes);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    free(first);
    free(second);
    free(in);
}

static void nobody(void) {
    MPI_Status status;
    MPI_Message message;
    int flag, count;
    OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_INT(status.MPI_TAG, MPI_ANY_TAG);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, 0);
    OK(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status));
    EXPECT_INT(flag, 1);
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL);
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    MPI_Request request;
    OK(MPI_Imrecv(NULL, 0, MPI_BYTE, &message, &request));
    OK(MPI_Wait(&request, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    wildcard_gather();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int sizes[] = {0, 1, 500, 9000, 100000, 1000000};
    for (int i = 0; i < 6; i++) unknown_length(sizes[i]);
    for (int i = 0; i < 6; i++) matched(sizes[i]);
    nobody();
    OK(MPI_Finalize());
    return 0;
}
