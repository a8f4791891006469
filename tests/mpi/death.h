// The death of one rank, for test programs.
#pragma once

#include <signal.h>

#include "check.h"

/// Kills rank `doomed` of the intra-communicator when all other ranks have called this function, and returns on the others. A rank that is
/// still in an earlier collective call may get an error from it if another rank dies: a barrier before the death is not enough.
__attribute__((unused)) static void kill_when_all_are_ready(MPI_Comm comm, int doomed) {
    enum { kTag = 4711 };
    int rank, size;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    if (rank != doomed) {
        OK(MPI_Send(NULL, 0, MPI_INT, doomed, kTag, comm));
        return;
    }
    for (int other = 0; other < size; ++other)
        if (other != doomed) OK(MPI_Recv(NULL, 0, MPI_INT, other, kTag, comm, MPI_STATUS_IGNORE));
    raise(SIGKILL);
}
