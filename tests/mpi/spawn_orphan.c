// A parent dies in MPI_Comm_spawn, before its child calls MPI_Init, and its job ends with it. The child's operations with the parent must
// return an error, although the child could never communicate with that job.
#include <mpi-ext.h>
#include <signal.h>

#include "dynamic.h"

static void child(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Request request;
    int value = 0, flag;
    CHECK(kill(atoi(argv[1]), SIGALRM) == 0, "the parent");  // it is in the spawn, and does not handle the signal
    sleep(1);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent != MPI_COMM_NULL, "the child has no parent");
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    int code = MPI_Irecv(&value, 1, MPI_INT, 0, 1, parent, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Recv(&value, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Probe(MPI_ANY_SOURCE, 1, parent, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Iprobe(0, 1, parent, &flag, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Send(&value, 1, MPI_INT, 0, 1, parent)), MPIX_ERR_PROC_FAILED);
    puts("the child went on without its parent");
    OK(MPI_Finalize());
}

int main(int argc, char** argv) {
    if (argc > 1) {
        child(argc, argv);
        return 0;
    }
    char me[16];
    OK(MPI_Init(&argc, &argv));
    snprintf(me, sizeof me, "%d", (int)getpid());
    spawn_self(me, 1, MPI_COMM_SELF);
    fail_at(__FILE__, __LINE__, "spawn", "the parent has survived");
    return 1;
}
