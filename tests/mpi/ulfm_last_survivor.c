// The last living rank of a communicator: once it has acknowledged the failures, its non-blocking receives from MPI_ANY_SOURCE wait for
// messages that it sends to itself, without further errors. A blocking receive fails, because nobody can send while it waits.
#include <mpi-ext.h>
#include <unistd.h>

#include "death.h"

static void survive(MPI_Comm comm) {
    MPI_Request early, late;
    MPI_Status status;
    int values[3] = {0, 0, 0}, flag = 1, acked = 0, number = 7, failed = 0;
    MPI_Group group;
    OK(MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &early));
    for (int i = 0; failed == 0 && i < 40000; i++) {
        OK(MPIX_Comm_get_failed(comm, &group));
        OK(MPI_Group_size(group, &failed));
        OK(MPI_Group_free(&group));
        usleep(5000);
    }
    EXPECT_INT(class_of(MPI_Wait(&early, &status)), MPIX_ERR_PROC_FAILED_PENDING);
    OK(MPIX_Comm_ack_failed(comm, 1, &acked));
    EXPECT_INT(acked, 1);
    OK(MPI_Test(&early, &flag, &status));
    EXPECT_INT(flag, 0);
    OK(MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &late));
    OK(MPI_Send(&number, 1, MPI_INT, 0, 2, comm));
    OK(MPI_Wait(&late, &status));
    EXPECT_INT(values[1], number);
    OK(MPI_Send(&number, 1, MPI_INT, 0, 1, comm));
    OK(MPI_Wait(&early, &status));
    EXPECT_INT(values[0], number);
    OK(MPI_Sendrecv(&number, 1, MPI_INT, 0, 3, &values[2], 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status));
    EXPECT_INT(values[2], number);
    EXPECT_INT(class_of(MPI_Recv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, &status)), MPIX_ERR_PROC_FAILED);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    kill_when_all_are_ready(MPI_COMM_WORLD, 1);
    survive(MPI_COMM_WORLD);
    puts("the last rank received what it sent to itself");
    OK(MPI_Finalize());
    return 0;
}
