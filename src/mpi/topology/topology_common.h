// What all topology functions share.
#pragma once

#include <memory>

#include "comm/topology.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// An intra-communicator to make a topology on; sets `error` (raised already) and gives nullptr otherwise.
comm::Comm* topology_base(MPI_Comm handle, int& error);

/// Makes a communicator of the first `nodes` ranks of `base` with this topology and gives it to the
/// application; MPI_COMM_NULL to the others. A member whose arguments are wrong calls with that `error` and its failure_text():
/// then all get one. Raises what fails.
int make_with_topology(comm::Comm& base, int nodes, std::shared_ptr<const comm::Topology> topology, MPI_Comm* newcomm,
                       int error = MPI_SUCCESS);

/// Raises MPI_ERR_TOPOLOGY: the communicator has not the topology that the function wants.
[[gnu::cold]] int bad_topology(comm::Comm* comm);

/// The topology of a communicator, which never changes, so no lock is needed to read it; sets `error` (raised already) and gives nullptr if it has none of this
/// type.
template <class T>
const T* find_topology(MPI_Comm handle, comm::Comm*& comm, int& error) {
    comm = comm::from_handle(handle);
    if (!comm) {
        error = bad_comm(handle);
        return nullptr;
    }
    const T* topology = comm::topology_of<T>(*comm);
    if (!topology) error = bad_topology(comm);
    return topology;
}

}  // namespace starling::mpi
