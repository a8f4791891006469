#pragma once

#include <mpi.h>

namespace farm {

/// Renders tiles for the coordinator at the other end of the inter-communicator until it is let go.
void run_worker(MPI_Comm coordinator);

}  // namespace farm
