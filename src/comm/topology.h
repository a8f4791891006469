// Process topologies (MPI 5.0 chapter 8): grids and graphs over the ranks of a communicator. node_order.h chooses the process of each node
// if the program lets ranks be reordered.
#pragma once

#include <span>
#include <vector>

#include "comm/comm.h"
#include "mpi.h"

namespace starling::comm {

/// A grid with ranks in row-major order.
struct CartTopology final : Topology {
    std::vector<int> dims;
    std::vector<bool> periodic;

    int kind() const override { return MPI_CART; }
    int dimensions() const { return static_cast<int>(dims.size()); }
    void coordinates(int rank, int* coords) const;
    /// Returns the rank at these coordinates, which wrap around in periodic dimensions; -1 if they are outside.
    int rank_at(std::span<const int> coords) const;
    /// Returns the rank `distance` steps from `rank` in one dimension; MPI_PROC_NULL beyond the border.
    int neighbor(int rank, int dimension, int64_t distance) const;
};

/// A graph in the form of MPI_Graph_create: index[i] is the end of rank i's neighbors in `edges`.
struct GraphTopology final : Topology {
    std::vector<int> index, edges;

    int kind() const override { return MPI_GRAPH; }
    std::span<const int> neighbors(int rank) const;
};

/// A graph in which each rank knows only its own edges.
struct DistGraphTopology final : Topology {
    struct Edge {
        int rank, weight;
    };
    std::vector<Edge> sources, destinations;
    bool weighted = false;
    bool everyone_has_edges = false;  ///< whether all ranks have edges; the same value on all processes

    int kind() const override { return MPI_DIST_GRAPH; }
};

/// Returns the topology of a communicator if it is of this type, else nullptr.
template <class T>
const T* topology_of(const Comm& comm) {
    return dynamic_cast<const T*>(comm.topology.get());
}

/// Fills the zeros of `dims` so that the product is `nodes` and the new entries are as even as possible, the largest first
/// (MPI_Dims_create). Returns false if the given dimensions do not divide `nodes`.
bool balance(int nodes, std::span<int> dims);

}  // namespace starling::comm
