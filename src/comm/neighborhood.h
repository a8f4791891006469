// The neighbors of a process in the topology of its communicator, for neighborhood collectives (MPI 5.0 section 8.6).
#pragma once

#include <vector>

namespace starling::comm {

struct Comm;

/// One side of an edge: the rank at its other end, and the index of its block in the buffer.
struct NeighborEdge {
    int rank, block;
};

/// The edges of one process. Edges that lead over the border of a grid have a block, but are not listed.
struct Neighborhood {
    int sources = 0, destinations = 0;  ///< number of blocks of the receive buffer and of the send buffer
    /// The edges, in the order in which messages must be started. With this order, the messages of several edges between the same two
    /// processes match.
    std::vector<NeighborEdge> receives, sends;
    bool mutual = false;    ///< whether every destination is also a source
    bool everyone = false;  ///< whether all processes have neighbors; the same value on all of them
};

/// Finds the neighborhood of this process, at the first call, and keeps it with the communicator. MPI_ERR_TOPOLOGY on all members if the
/// communicator has no topology, or a graph with an edge in one direction only.
int neighborhood_of(Comm& comm, const Neighborhood*& found);

}  // namespace starling::comm
