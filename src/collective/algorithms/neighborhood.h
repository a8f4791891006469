// Neighborhood collectives (MPI 5.0 section 8.6): a message along every edge of the topology. Arguments as in MPI, checked by the
// caller; blocks are indexed by neighbor. All members of the communicator make the same calls in the same order.
#pragma once

#include "collective/comm_call.h"
#include "comm/neighborhood.h"

namespace starling::collective {

/// Neighborhood allgather: the buffer `send` is sent to all neighbors.
Task neighbor_allgather(CommCall& call, const comm::Neighborhood& near, const void* send, int64_t count, const Datatype& type,
                        const Blocks& receive);
Task neighbor_alltoall(CommCall& call, const comm::Neighborhood& near, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective
