// Rank 1 sends messages and dies at once. Rank 0 first waits until it knows of the death: it must still receive all of them, in order, by
// receives of all kinds. The next receive fails. The argument is the number of messages, which decides whether a ring between the two exists.
#include "await_failure.h"
#include "death.h"

enum { kTag = 5, kMost = 1000 };

static int length_of(int i) { return 1 + i * 37 % kMost; }

static void receive(int i, int* data, MPI_Comm comm) {
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    int count, flag = 0;
    switch (i % 4) {
        case 0:
            OK(MPI_Recv(data, kMost, MPI_INT, 1, kTag, comm, &status));
            break;
        case 1:
            OK(MPI_Irecv(data, kMost, MPI_INT, 1, MPI_ANY_TAG, comm, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 2:
            OK(MPI_Mprobe(1, kTag, comm, &message, &status));
            OK(MPI_Mrecv(data, kMost, MPI_INT, &message, &status));
            break;
        default:
            OK(MPI_Iprobe(1, kTag, comm, &flag, &status));
            CHECK(flag, "message %d is not there", i);
            OK(MPI_Recv(data, kMost, MPI_INT, 1, kTag, comm, &status));
    }
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EXPECT_INT(count, length_of(i));
    for (int k = 0; k < count; k++) EXPECT_INT(data[k], i + k);
}

int main(int argc, char** argv) {
    static int data[kMost];
    int rank;
    MPI_Comm comm;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 2);
    const int messages = atoi(argv[1]);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    // Rank 0 has left the collective call.
    if (rank == 0) OK(MPI_Send(NULL, 0, MPI_INT, 1, kTag, comm));
    if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, kTag, comm, MPI_STATUS_IGNORE));
        for (int i = 0; i < messages; i++) {
            for (int k = 0; k < length_of(i); k++) data[k] = i + k;
            OK(MPI_Send(data, length_of(i), MPI_INT, 0, kTag, comm));
        }
        raise(SIGKILL);
    }
    await_failure(comm);
    for (int i = 0; i < messages; i++) receive(i, data, comm);
    EXPECT_INT(class_of(MPI_Recv(data, 1, MPI_INT, 1, kTag, comm, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    puts("all messages were received");
    return 0;
}
