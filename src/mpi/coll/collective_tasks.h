// The collective functions as tasks, with their arguments checked. A blocking call runs the task and a non-blocking one starts it. The task
// is empty if the call has an error.
#pragma once

#include "mpi/coll/collective_call.h"

namespace starling::mpi {

Task barrier_task(CollectiveCall& call);
Task bcast_task(CollectiveCall& call, void* buffer, MPI_Count count, MPI_Datatype datatype, int root);

/// The application's arguments for one side of a gather, scatter or all-to-all, or of a neighborhood collective: uniform or counted blocks.
struct BlockArguments {
    const void* buffer;
    MPI_Count count;  ///< number of elements in each block if the blocks are uniform
    Counts counts, displacements;
    MPI_Datatype type;
    bool uniform;
    BlockArguments(const void* b, MPI_Count c, MPI_Datatype t)
        : buffer(b), count(c), counts(nullptr), displacements(nullptr), type(t), uniform(true) {}
    BlockArguments(const void* b, Counts c, Counts d, MPI_Datatype t)
        : buffer(b), count(0), counts(c), displacements(d), type(t), uniform(false) {}

    /// Checks `n` blocks and returns their type, or null if there was an error.
    const Datatype* check(CollectiveCall& call, int n) const {
        return uniform ? call.data(buffer, count, type) : call.blocks(n, buffer, counts, displacements, type);
    }
    Blocks blocks(CollectiveCall& call, int n, const Datatype& checked) const {
        return uniform ? Blocks(buffer, count, checked)
                       : Blocks(buffer, call.copy_array(counts, n), call.copy_array(displacements, n), checked);
    }
};

Task gather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype, const BlockArguments& receive,
                 int root);
Task scatter_task(CollectiveCall& call, const BlockArguments& send, void* receive, MPI_Count count, MPI_Datatype datatype,
                  int root);
Task allgather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype,
                    const BlockArguments& receive);
Task alltoall_task(CollectiveCall& call, const BlockArguments& send, const BlockArguments& receive);
Task alltoallw_task(CollectiveCall& call, const void* send, Counts send_counts, Counts send_displacements,
                    const MPI_Datatype send_types[], void* receive, Counts receive_counts, Counts receive_displacements,
                    const MPI_Datatype receive_types[]);

Task reduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root);
Task allreduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op);
Task reduce_scatter_block_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op);
Task reduce_scatter_task(CollectiveCall& call, const void* send, void* receive, Counts counts, MPI_Datatype datatype,
                         MPI_Op op);
Task scan_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               bool exclusive);

}  // namespace starling::mpi
