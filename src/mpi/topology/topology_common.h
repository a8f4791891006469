// Helpers that all topology functions share.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "comm/member_hosts.h"
#include "comm/node_order.h"
#include "comm/topology.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// Returns the communicator to create a topology on. If the handle is not an intra-communicator, raises the error, stores it in `error` and
/// returns nullptr.
comm::Comm* topology_base(MPI_Comm handle, int& error);

/// Returns the ranks of `base` that get the nodes 0, 1, … of a topology: those of the same numbers or, with `reorder`, as order_nodes()
/// chooses. `edges()` returns the edges between the nodes; it is called only if the processes are on several hosts. Local: all members get
/// the same result from the same edges.
template <class Edges>
std::vector<int> ranks_of_nodes(comm::Comm& base, int nodes, bool reorder, Edges edges) {
    std::vector<int> host_of;
    if (reorder) host_of = comm::host_numbers(base.local_group(), 0, nodes);
    if (std::any_of(host_of.begin(), host_of.end(), [](int host) { return host > 0; }))
        return comm::order_nodes(host_of, edges());
    std::vector<int> ranks(static_cast<size_t>(nodes));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

/// Returns the node of a process, by ranks_of_nodes(); MPI_UNDEFINED if it has none.
int node_of(int rank, const std::vector<int>& ranks);

/// Creates a communicator of these ranks of `base` with this topology and stores its handle; the other ranks get MPI_COMM_NULL. A member
/// with wrong arguments calls it with its `error` and failure_text(), and then all members get an error. Raises errors.
int make_with_topology(comm::Comm& base, const std::vector<int>& ranks, std::shared_ptr<const comm::Topology> topology,
                       MPI_Comm* newcomm, int error = MPI_SUCCESS);

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
