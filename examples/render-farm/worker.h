#pragma once

#include <mpi.h>

namespace farm {

/// Renders tiles for the coordinator at the other end of the inter-communicator until it gets kLeave.
void run_worker(MPI_Comm coordinator);

/// Runs a worker in a member of the coordinator's job; rank 0 of the job is the coordinator.
void run_member();

}  // namespace farm
