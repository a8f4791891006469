// Tests receives and probes from MPI_ANY_SOURCE after members of the communicator have ended normally. Such a member is not a sender any
// more and takes nothing from the others: they may still send. When no other member is left, a wait ends with an error, a poll finds
// nothing, and the process may still send to itself. With recovery the results are the same.
#include <mpi-ext.h>

#include "dynamic.h"

enum { kLong = 300000 };

static int has_ended_class(int code) {
    const int class = class_of(code);
    return class == MPI_ERR_PROC_ABORTED || class == MPIX_ERR_PROC_FAILED;
}

static void poll(MPI_Comm comm) {
    int flag = 1;
    MPI_Message message;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
    OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
}

/// Sends to this process itself, and ends the receive with one of the completion calls.
static void send_to_self(MPI_Comm comm, int rank, int how) {
    int value = 0, number = 7, flag = 1, index;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &request));
    OK(MPI_Send(&number, 1, MPI_INT, rank, 3, comm));
    if (how == 0) OK(MPI_Wait(&request, &status));
    if (how == 1) OK(MPI_Test(&request, &flag, &status));
    if (how == 2) OK(MPI_Testall(1, &request, &flag, &status));
    if (how == 3) OK(MPI_Waitany(1, &request, &index, &status));
    if (how == 4) OK(MPI_Testany(1, &request, &index, &flag, &status));
    if (how == 5) {
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, &status));
    }
    EXPECT_INT(flag, 1);
    EXPECT_INT(value, number);
    EXPECT_INT(status.MPI_SOURCE, rank);
}

/// Exchanges a message with this process itself, short or long enough for a rendezvous.
static void exchange_with_self(MPI_Comm comm, int rank, int count) {
    static int out[kLong], in[kLong];
    MPI_Status status;
    MPI_Request request;
    out[count - 1] = count;
    OK(MPI_Sendrecv(out, count, MPI_INT, rank, 3, in, count, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status));
    EXPECT_INT(in[count - 1], count);
    in[count - 1] = 0;
    OK(MPI_Isendrecv(out, count, MPI_INT, rank, 3, in, count, MPI_INT, MPI_ANY_SOURCE, 3, comm, &request));
    OK(MPI_Wait(&request, &status));
    EXPECT_INT(in[count - 1], count);
}

/// Every wait ends in a communicator whose other members have all ended.
static void wait_without_senders(MPI_Comm comm, MPI_Request early, int rank) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request late;
    int value = 0, number = 7;
    poll(comm);
    CHECK(has_ended_class(MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 9, comm, &status)), "MPI_Recv");
    CHECK(has_ended_class(MPI_Probe(MPI_ANY_SOURCE, 9, comm, &status)), "MPI_Probe");
    CHECK(has_ended_class(MPI_Mprobe(MPI_ANY_SOURCE, 9, comm, &message, &status)), "MPI_Mprobe");
    EXPECT_INT(class_of(MPI_Wait(&early, &status)), MPIX_ERR_PROC_FAILED_PENDING);
    OK(MPI_Cancel(&early));
    OK(MPI_Wait(&early, &status));
    for (int how = 0; how < 6; how++) send_to_self(comm, rank, how);
    for (int count = 1; count <= kLong; count += kLong - 1) exchange_with_self(comm, rank, count);
    OK(MPI_Send(&number, 1, MPI_INT, rank, 3, comm));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status));
    OK(MPI_Send(&number, 1, MPI_INT, rank, 3, comm));
    OK(MPI_Probe(MPI_ANY_SOURCE, 3, comm, &status));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status));
    // The last acknowledgment ends the request.
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &late));
    EXPECT_INT(class_of(MPI_Wait(&late, &status)), MPIX_ERR_PROC_FAILED_PENDING);
    OK(MPIX_Comm_failure_ack(comm));
    CHECK(has_ended_class(MPI_Wait(&late, &status)), "MPI_Wait after the acknowledgment");
    CHECK(late == MPI_REQUEST_NULL, "the request is still active");
    poll(comm);
}

/// A communicator without other members is not affected by the ends of other jobs.
static void receive_from_self(void) {
    int value = 0, number = 5, flag;
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &request));
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
    OK(MPI_Send(&number, 1, MPI_INT, 0, 3, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(value, number);
}

/// The last child: one of the two jobs in the remote group ends, and the other one sends later.
static void receive_from_living(MPI_Comm parents) {
    MPI_Status status;
    int n;
    OK(MPI_Comm_set_errhandler(parents, MPI_ERRORS_RETURN));
    OK(MPI_Comm_remote_size(parents, &n));
    EXPECT_INT(n, 3);
    await_end(1, parents);
    poll(parents);
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 4, parents));
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 5, parents, &status));
    EXPECT_INT(status.MPI_SOURCE, 0);
    poll(parents);
}

/// A child that learns of the ended job only after the end: it has used nothing of that job before.
static void receive_late(MPI_Comm parents) {
    MPI_Status status;
    OK(MPI_Comm_set_errhandler(parents, MPI_ERRORS_RETURN));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 6, parents, MPI_STATUS_IGNORE));
    poll(parents);
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 4, parents));
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 5, parents, &status));
    EXPECT_INT(status.MPI_SOURCE, 0);
    await_end(1, parents);
    poll(parents);
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter, all, last, late;
    MPI_Request early;
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (argc > 1 && !strcmp(argv[1], "last")) {
        receive_from_living(parent);
        OK(MPI_Finalize());
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "late")) {
        receive_late(parent);
        OK(MPI_Finalize());
        return 0;
    }
    const int is_child = argc > 1 && !strcmp(argv[1], "child");
    inter = is_child ? parent : spawn_self("child", 2, MPI_COMM_SELF);
    OK(MPI_Intercomm_merge(inter, is_child, &all));
    last = spawn_self("last", 1, all);
    late = spawn_self("late", 1, all);
    if (is_child) {
        OK(MPI_Finalize());
        return 0;
    }
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 9, all, &early));
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 4, last, MPI_STATUS_IGNORE));
    await_end(0, inter);
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 6, late));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 4, late, MPI_STATUS_IGNORE));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 5, late));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 5, last));
    wait_without_senders(all, early, rank);
    receive_from_self();
    OK(MPI_Finalize());
    return 0;
}
