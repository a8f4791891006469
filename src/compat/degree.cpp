// Returns the number of a process's neighbors, which the conversion of neighborhood arguments requires.
#include "compat/convert.h"

namespace starling::compat {

int neighbours(MPI_Comm comm, bool outgoing) {
    int topology = MPI_UNDEFINED, count = 0;
    if (library.Topo_test(comm, &topology) != MPI_SUCCESS) return 0;
    if (topology == MPI_CART) {
        library.Cartdim_get(comm, &count);
        return 2 * count;
    }
    int rank = 0, out = 0, weighted = 0;
    library.Comm_rank(comm, &rank);
    if (topology == MPI_GRAPH) library.Graph_neighbors_count(comm, rank, &count);
    if (topology == MPI_DIST_GRAPH) library.Dist_graph_neighbors_count(comm, &count, &out, &weighted);
    return topology == MPI_DIST_GRAPH && outgoing ? out : count;
}

}  // namespace starling::compat
