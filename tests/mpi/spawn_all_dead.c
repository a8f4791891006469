// In a job with --enable-recovery all children die, so their job ends. Operations that begin after its end must still report the deaths:
// probes that do not wait, cancelled receives, and collectives of the parents with the children.
#include <mpi-ext.h>
#include <signal.h>

#include "dynamic.h"

enum { kChildren = 2 };

static int rank;

static void child(MPI_Comm parent) {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, parent, MPI_STATUS_IGNORE));
    raise(SIGKILL);
}

// Waits for the deaths, and then until the end of the children's job was noticed as well. Only its failures have a state of their own that a
// program can see, so the second wait is by time.
static void wait_for_end(MPI_Comm inter) {
    int flag;
    for (int i = 0; i < kChildren; i++)
        EXPECT_INT(class_of(MPI_Recv(NULL, 0, MPI_BYTE, i, 9, inter, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    for (int i = 0; i < 50; i++) {
        usleep(10000);
        OK(MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    }
}

static void poll(int source, MPI_Comm comm) {
    int flag = 1;
    MPI_Message message;
    EXPECT_INT(class_of(MPI_Iprobe(source, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Improbe(source, MPI_ANY_TAG, comm, &flag, &message, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
}

// A receive from a dead rank has failed before it is cancelled. It must not count as cancelled.
static void cancel(int source, MPI_Comm comm) {
    MPI_Request request;
    OK(MPI_Irecv(NULL, 0, MPI_BYTE, source, 9, comm, &request));
    OK(MPI_Cancel(&request));
    EXPECT_INT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) child(parent);
    inter = spawn_self("child", kChildren, MPI_COMM_WORLD);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < kChildren && rank == 0; i++) OK(MPI_Send(NULL, 0, MPI_BYTE, i, 1, inter));
    wait_for_end(inter);
    poll(0, inter);
    poll(kChildren - 1, inter);
    poll(MPI_ANY_SOURCE, inter);
    cancel(0, inter);
    cancel(MPI_ANY_SOURCE, inter);
    EXPECT_INT(class_of(MPI_Barrier(inter)), MPIX_ERR_PROC_FAILED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("all deaths were reported");
    OK(MPI_Finalize());
    return 0;
}
