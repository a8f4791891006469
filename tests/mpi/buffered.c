// Tests buffered sends: they complete without a receiver, use no more of the buffer than MPI_BSEND_OVERHEAD allows, and fail when the
// buffer is full. MPI_Buffer_detach waits for pending messages.
#include "check.h"

enum { kMessages = 20, kBytes = 5000 };

static void send_and_detach(int rank, int size) {
    static char data[kBytes], in[kBytes];
    int packed, detached_bytes, to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Pack_size(kBytes, MPI_BYTE, MPI_COMM_WORLD, &packed));
    int bytes = kMessages * (packed + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(bytes), *detached;
    OK(MPI_Buffer_attach(buffer, bytes));
    for (int i = 0; i < kMessages; i++) {
        fill_bytes(data, kBytes, rank + i);
        OK(MPI_Bsend(data, kBytes, MPI_BYTE, to, i, MPI_COMM_WORLD));
        memset(data, 0, sizeof data);  // the sender may change its data at once
    }
    for (int i = kMessages - 1; i >= 0; i--) {  // receives in the reverse order of the sends, selected by tag
        OK(MPI_Recv(in, kBytes, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(in, kBytes, from + i) < 0, "message %d differs", i);
    }
    OK(MPI_Buffer_detach(&detached, &detached_bytes));
    CHECK(detached == buffer);
    EXPECT_INT(detached_bytes, bytes);
    free(buffer);
}

static void overflow(int rank) {
    char* data = calloc(1, 100000);
    void *buffer = malloc(1000 + MPI_BSEND_OVERHEAD), *detached;
    int bytes;
    OK(MPI_Buffer_attach(buffer, 1000 + MPI_BSEND_OVERHEAD));
    EXPECT_ERROR(MPI_Bsend(data, 100000, MPI_BYTE, rank, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Bsend(data, 1000, MPI_BYTE, rank, 1, MPI_COMM_WORLD));
    OK(MPI_Recv(data, 1000, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&detached, &bytes));
    free(buffer);
    free(data);
}

// After MPI_Buffer_detach the message must arrive, although no receive was posted before.
static void detach_delivers(int rank, int size) {
    if (size < 2) return;
    int bytes = 200000 + MPI_BSEND_OVERHEAD;
    char* data = malloc(200000);
    if (rank == 0) {
        void *buffer = malloc(bytes), *detached;
        OK(MPI_Buffer_attach(buffer, bytes));
        fill_bytes(data, 200000, 3);
        OK(MPI_Bsend(data, 200000, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Buffer_detach(&detached, &bytes));
        memset(buffer, 0, bytes);
        free(buffer);
    } else if (rank == 1) {
        OK(MPI_Recv(data, 200000, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(data, 200000, 3) < 0, "data differ after detach");
    }
    free(data);
}

// Completed messages must release their buffer space, so that 500 messages fit in a buffer for four.
static void reuse(int rank) {
    char data[256], in[256];
    int bytes = 4 * (256 + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(bytes), *detached;
    OK(MPI_Buffer_attach(buffer, bytes));
    for (int i = 0; i < 500; i++) {
        fill_bytes(data, 256, i);
        OK(MPI_Bsend(data, 256, MPI_BYTE, rank, 9, MPI_COMM_WORLD));
        OK(MPI_Recv(in, 256, MPI_BYTE, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(in, 256, i) < 0, "round %d", i);
    }
    OK(MPI_Buffer_detach(&detached, &bytes));
    free(buffer);
}

#if MPI_AT_LEAST(4, 1)
static void per_communicator(int rank) {
    char data[256], in[256];
    int bytes = 4 * (256 + MPI_BSEND_OVERHEAD), got;
    void *buffer = malloc(bytes), *detached;
    MPI_Comm dup;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_attach_buffer(dup, buffer, bytes));
    fill_bytes(data, 256, 1);
    OK(MPI_Bsend(data, 256, MPI_BYTE, rank, 9, dup));
    OK(MPI_Recv(in, 256, MPI_BYTE, rank, 9, dup, MPI_STATUS_IGNORE));
    CHECK(first_wrong_byte(in, 256, 1) < 0);
    OK(MPI_Comm_flush_buffer(dup));
    OK(MPI_Comm_iflush_buffer(dup, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(dup, &detached, &got));
    CHECK(detached == buffer && got == bytes);
    OK(MPI_Comm_free(&dup));
    free(buffer);
}

static void automatic(int rank) {
    char* data = malloc(300000);
    void* detached;
    int bytes;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int i = 0; i < 10; i++) {
        fill_bytes(data, 300000, i);
        OK(MPI_Bsend(data, 300000, MPI_BYTE, rank, i, MPI_COMM_WORLD));
    }
    for (int i = 0; i < 10; i++) {
        OK(MPI_Recv(data, 300000, MPI_BYTE, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(data, 300000, i) < 0, "round %d", i);
    }
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_detach(&detached, &bytes));
    CHECK(detached == MPI_BUFFER_AUTOMATIC);
    EXPECT_INT(bytes, 0);
    free(data);
}
#endif

int main(int argc, char** argv) {
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    send_and_detach(rank, size);
    overflow(rank);
    detach_delivers(rank, size);
    reuse(rank);
#if MPI_AT_LEAST(4, 1)
    per_communicator(rank);
    automatic(rank);
#endif
    OK(MPI_Finalize());
    return 0;
}
