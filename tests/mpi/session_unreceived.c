// A process that only opens an MPI session exits without receiving a message on MPI_COMM_WORLD. This is an error of the program, but the senders
// must not wait forever: their MPI_Finalize returns when the receiver has exited.
#define _DEFAULT_SOURCE
#include <unistd.h>

#include "check.h"

/// Makes progress for a moment, so that the others' packets arrive and are acknowledged.
static void acknowledge(MPI_Session session) {
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Comm_create_from_group(group, "self", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    for (const double begin = MPI_Wtime(); MPI_Wtime() < begin + 0.7;) {
        int flag;
        OK(MPI_Iprobe(0, 2, comm, &flag, MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
}

int main(int argc, char** argv) {
    static char data[1 << 20];
    int rank, size;
    MPI_Session session;
    MPI_Group group;
    MPI_Request request;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Group_rank(group, &rank));
    OK(MPI_Group_size(group, &size));
    OK(MPI_Group_free(&group));
    if (rank == size - 1) {
        acknowledge(session);
        OK(MPI_Session_finalize(&session));
        usleep(200000);
    } else {
        OK(MPI_Session_finalize(&session));
        OK(MPI_Init(&argc, &argv));
        OK(MPI_Isend(data, sizeof data, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        OK(MPI_Finalize());
    }
    return 0;
}
