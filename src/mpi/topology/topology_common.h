// Helpers that all topology functions share.
#pragma once

#include <memory>

#include "comm/topology.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// Returns the communicator to create a topology on. If the handle is not an intra-communicator, raises the error, stores it in `error` and
/// returns nullptr.
comm::Comm* topology_base(MPI_Comm handle, int& error);

/// Creates a communicator of the first `nodes` ranks of `base` with this topology and stores its handle; the other ranks get MPI_COMM_NULL.
/// A member with wrong arguments calls it with its `error` and failure_text(), and then all members get an error. Raises errors.
int make_with_topology(comm::Comm& base, int nodes, std::shared_ptr<const comm::Topology> topology, MPI_Comm* newcomm,
                       int error = MPI_SUCCESS);

/// Raises MPI_ERR_TOPOLOGY: the communicator does not have the required topology.
[[gnu::cold]] int bad_topology(comm::Comm* comm);

/// Returns the topology of a communicator. It never changes, so reading needs no lock. If the communicator has no topology of this type,
/// raises the error, stores it in `error` and returns nullptr.
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
