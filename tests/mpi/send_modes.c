// Tests every send mode, blocking, non-blocking and persistent, with the message sizes of every protocol.
#include "check.h"

static const int kSizes[] = {0, 1, 8, 100, 1000, 4096, 10000, 70000, 300000, 1500000};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes, kLargest = 1500000 };
enum { kStandard, kBuffered, kSynchronous, kReady, kModes };
static const char* const kNames[] = {"standard", "buffered", "synchronous", "ready"};

static void send_blocking(int mode, const void* data, int n, int to, int tag) {
    switch (mode) {
        case kStandard:
            OK(MPI_Send(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD));
            break;
        case kBuffered:
            OK(MPI_Bsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD));
            break;
        case kSynchronous:
            OK(MPI_Ssend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD));
            break;
        default:
            OK(MPI_Rsend(data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD));
    }
}

static void send_started(int mode, int persistent, const void* data, int n, int to, int tag, MPI_Request* request) {
    int (*const now[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {MPI_Isend, MPI_Ibsend, MPI_Issend,
                                                                                            MPI_Irsend};
    int (*const init[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {MPI_Send_init, MPI_Bsend_init,
                                                                                             MPI_Ssend_init, MPI_Rsend_init};
    if (persistent) {
        OK(init[mode](data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request));
        OK(MPI_Start(request));
    } else {
        OK(now[mode](data, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request));
    }
}

// The receive is posted before a barrier, so that ready sends are legal.
static void exchange(int mode, int form, int size_index, char* out, char* in) {
    int rank, size, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, n = kSizes[size_index];
    int tag = 100 * mode + 10 * form + size_index;
    MPI_Request receive, send = MPI_REQUEST_NULL;
    MPI_Status status;
    fill_bytes(out, n, rank * 7 + tag);
    memset(in, 0xee, n + 1);
    OK(MPI_Irecv(in, n, MPI_BYTE, from, tag, MPI_COMM_WORLD, &receive));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (form == 0)
        send_blocking(mode, out, n, to, tag);
    else
        send_started(mode, form == 2, out, n, to, tag, &send);
    OK(MPI_Wait(&receive, &status));
    EXPECT_INT(status.MPI_SOURCE, from);
    EXPECT_INT(status.MPI_TAG, tag);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, n);
    long wrong = first_wrong_byte(in, n, from * 7 + tag);
    CHECK(wrong < 0, "%s form %d, %d bytes: byte %ld differs", kNames[mode], form, n, wrong);
    CHECK((unsigned char)in[n] == 0xee, "%s form %d, %d bytes: written past the end", kNames[mode], form, n);
    if (form) OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    if (form == 2) OK(MPI_Request_free(&send));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    char* out = malloc(kLargest + 1);
    char* in = malloc(kLargest + 1);
    int buffer_bytes = 2 * (kLargest + MPI_BSEND_OVERHEAD), detached_bytes;
    void* buffer = malloc(buffer_bytes);
    void* detached;
    for (int mode = 0; mode < kModes; mode++) {
        if (mode == kBuffered) OK(MPI_Buffer_attach(buffer, buffer_bytes));
        for (int form = 0; form < 3; form++)
            for (int i = 0; i < kSizeCount; i++) exchange(mode, form, i, out, in);
        if (mode == kBuffered) {
            OK(MPI_Buffer_detach(&detached, &detached_bytes));
            CHECK(detached == buffer, "the detach returned another buffer");
            EXPECT_INT(detached_bytes, buffer_bytes);
        }
    }
    free(buffer);
    free(in);
    free(out);
    OK(MPI_Finalize());
    return 0;
}
