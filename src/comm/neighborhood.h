// The neighbours of a process in the topology of its communicator, as neighborhood collectives see them (MPI 5.0 section 8.6).
#pragma once

#include <vector>

namespace starling::comm {

struct Comm;

/// One side of an edge: the rank at its other end, and which block of the buffer is its.
struct NeighborEdge {
    int rank, block;
};

/// Edges that lead over the border of a grid have a block, but are not listed.
struct Neighborhood {
    int sources = 0, destinations = 0;  ///< blocks of the receive and of the send buffer
    /// In the order in which messages have to be started so that those of several edges between the same two processes match.
    std::vector<NeighborEdge> receives, sends;
    bool mutual = false;    ///< who is sent to is received from
    bool everyone = false;  ///< all processes of the communicator have neighbours: all know that alike
};

/// The neighbourhood of this process, found at the first call and kept with the communicator. MPI_ERR_TOPOLOGY if the
/// communicator has no topology, or a graph of which an edge leads one way only; all members get the same.
int neighborhood_of(Comm& comm, const Neighborhood*& found);

}  // namespace starling::comm
