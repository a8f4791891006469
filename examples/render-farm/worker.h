#pragma once

#include <mpi.h>

namespace farm {

/// Renders tiles for the coordinator at the other end of the inter-communicator until it is let go.
void run_worker(MPI_Comm coordinator);

/// The same for a member of the coordinator's own job, whose rank 0 it is.
void run_member();

}  // namespace farm
