// Floods of unexpected messages: many small ones from all ranks to one, received late and in another order; then a stream of single bytes
// while the receiver sleeps.
#include <unistd.h>

#include "check.h"

static int rank, size;

static void late_receiver(int messages) {
    if (rank != 0) {
        int* data = malloc(messages * sizeof *data);
        MPI_Request* requests = malloc(messages * sizeof *requests);
        for (int i = 0; i < messages; i++) {
            data[i] = rank * 1000000 + i;
            OK(MPI_Isend(&data[i], 1, MPI_INT, 0, i % 5, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD));
        OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
        free(requests);
        free(data);
    } else {
        for (int i = 1; i < size; i++) OK(MPI_Recv(NULL, 0, MPI_BYTE, i, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int from = size - 1; from >= 1; from--)
            for (int tag = 4; tag >= 0; tag--)
                for (int i = tag; i < messages; i += 5) {
                    int value;
                    OK(MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                    EXPECT_INT(value, from * 1000000 + i);
                }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Blocking sends to a rank that sleeps: the sender must buffer or wait, but never lose a message or deadlock.
static void sleeping_receiver(int messages, int bytes) {
    char* data = malloc(bytes);
    if (rank == 0) {
        usleep(100000);
        for (int i = 0; i < messages * (size - 1); i++) {
            MPI_Status status;
            OK(MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status));
            CHECK(first_wrong_byte(data, bytes, status.MPI_SOURCE) < 0, "from %d", status.MPI_SOURCE);
        }
    } else {
        fill_bytes(data, bytes, rank);
        for (int i = 0; i < messages; i++) OK(MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
    free(data);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Every rank floods all others before any rank receives.
static void all_to_all(int messages, int bytes) {
    char* out = malloc((size_t)messages * bytes);
    char* in = malloc(bytes);
    MPI_Request* requests = malloc(messages * size * sizeof *requests);
    for (int i = 0; i < messages; i++) fill_bytes(out + (size_t)i * bytes, bytes, rank * 100 + i);
    for (int to = 0; to < size; to++)
        for (int i = 0; i < messages; i++)
            OK(MPI_Isend(out + (size_t)i * bytes, bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD, &requests[to * messages + i]));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < messages; i++) {
            OK(MPI_Recv(in, bytes, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(first_wrong_byte(in, bytes, from * 100 + i) < 0, "message %d from %d", i, from);
        }
    OK(MPI_Waitall(messages * size, requests, MPI_STATUSES_IGNORE));
    free(requests);
    free(in);
    free(out);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (size > 1) {
        late_receiver(20000 / (size - 1));
        sleeping_receiver(40000 / (size - 1), 1);
        sleeping_receiver(4000 / (size - 1), 900);
    }
    all_to_all(1000 / size, 40);
    all_to_all(200 / size + 1, 6000);
    OK(MPI_Finalize());
    return 0;
}
