// The neighborhood collectives with their arguments checked, as tasks (see collective_tasks.h).
#pragma once

#include "mpi/coll/collective_tasks.h"

namespace starling::mpi {

Task neighbor_allgather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype,
                             const BlockArguments& receive);
Task neighbor_alltoall_task(CollectiveCall& call, const BlockArguments& send, const BlockArguments& receive);
Task neighbor_alltoallw_task(CollectiveCall& call, const void* send, Counts send_counts, Counts send_displacements,
                             const MPI_Datatype send_types[], void* receive, Counts receive_counts,
                             Counts receive_displacements, const MPI_Datatype receive_types[]);

}  // namespace starling::mpi
