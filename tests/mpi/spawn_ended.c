// Tests communicators with a job that has ended normally: a program may still poll for its messages, cancel receives from it, and receive from
// MPI_ANY_SOURCE, as long as others can send. Only a wait that nobody can end is an error.
#include "dynamic.h"

static int rank, size;

static void poll(int source, MPI_Comm comm) {
    int flag = 1;
    MPI_Message message;
    OK(MPI_Iprobe(source, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
    OK(MPI_Improbe(source, MPI_ANY_TAG, comm, &flag, &message, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
}

static void cancel(int source, MPI_Comm comm) {
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    OK(MPI_Irecv(NULL, 0, MPI_BYTE, source, 9, comm, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 1);
}

// Ranks other than 0 send late, so rank 0 waits for them after the children have ended.
static void receive_from_any(MPI_Comm all) {
    int value = rank;
    if (rank != 0) {
        usleep(50000);
        OK(MPI_Send(&value, 1, MPI_INT, 0, 3, all));
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, all, &status));
        EXPECT_INT(value, status.MPI_SOURCE);
    }
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter, all;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Intercomm_merge(parent, 1, &all));
        OK(MPI_Finalize());
        return 0;
    }
    inter = spawn_self("child", 2, MPI_COMM_WORLD);
    OK(MPI_Intercomm_merge(inter, 0, &all));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    await_end(0, inter);
    poll(0, inter);
    poll(MPI_ANY_SOURCE, inter);
    poll(size, all);
    cancel(0, inter);
    cancel(MPI_ANY_SOURCE, inter);
    cancel(size + 1, all);
    receive_from_any(all);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int code = MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 9, inter, MPI_STATUS_IGNORE), class;
    OK(MPI_Error_class(code, &class));
    EXPECT_INT(class, MPI_ERR_PROC_ABORTED);
    OK(MPI_Finalize());
    return 0;
}
