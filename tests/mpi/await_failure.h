// Waits for the knowledge of a failure, for test programs that continue after deaths.
#pragma once

#include <mpi-ext.h>
#include <unistd.h>

#include "check.h"

/// Returns when this process knows that a member of the communicator has failed.
__attribute__((unused)) static void await_failure(MPI_Comm comm) {
    for (int n = 0; n == 0;) {
        MPI_Group failed;
        OK(MPIX_Comm_get_failed(comm, &failed));
        OK(MPI_Group_size(failed, &n));
        OK(MPI_Group_free(&failed));
        if (n == 0) usleep(1000);
    }
}
