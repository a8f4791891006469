// Cartesian topologies.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "collective/collective_request.h"
#include "collective/communicator/creation.h"
#include "mpi/topology/topology.h"
#include "mpi/topology/topology_common.h"

namespace starling::mpi {

using comm::CartTopology;
using comm::Comm;

namespace {

// Counts the grid points into `nodes`; returns MPI_SUCCESS or an error class.
int count_nodes(int ndims, const int dims[], int size, int& nodes) {
    if (ndims < 0) return fail(MPI_ERR_DIMS, "the number of dimensions, %d, is negative", ndims);
    if (ndims > 0 && !dims) return null_pointer("dims");
    int64_t product = 1;
    for (int i = 0; i < ndims; ++i) {
        if (dims[i] <= 0) return fail(MPI_ERR_DIMS, "dimension %d has size %d, which is not positive", i, dims[i]);
        product *= dims[i];
        if (product > size)
            return fail(MPI_ERR_TOPOLOGY, "the grid has more points than the communicator has processes (%d)", size);
    }
    nodes = static_cast<int>(product);
    return MPI_SUCCESS;
}

/// Stores a grid of `dims`, of which `periods` may be null.
std::shared_ptr<CartTopology> grid_of(int ndims, const int dims[], const int periods[]) {
    auto cart = std::make_shared<CartTopology>();
    for (int i = 0; i < ndims; ++i) {
        cart->dims.push_back(dims[i]);
        cart->periodic.push_back(periods && periods[i] != 0);
    }
    return cart;
}

std::vector<int> ranks_of_grid(Comm& base, const CartTopology& cart, int nodes, bool reorder) {
    return ranks_of_nodes(base, nodes, reorder, [&] { return comm::edges_of(cart, nodes); });
}

int bad_dimension(Comm* comm, int dimension, const CartTopology& cart) {
    return raise(comm, fail(MPI_ERR_DIMS, "there is no dimension %d in a grid of %d dimensions", dimension, cart.dimensions()));
}

}  // namespace

Comm* topology_base(MPI_Comm handle, int& error) {
    Comm* comm = comm::from_handle(handle);
    if (!comm)
        error = bad_comm(handle);
    else if (comm->is_inter)
        error = wrong_kind_of_comm(comm);
    else
        return comm;
    return nullptr;
}

int node_of(int rank, const std::vector<int>& ranks) {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? MPI_UNDEFINED : static_cast<int>(found - ranks.begin());
}

int make_with_topology(Comm& base, const std::vector<int>& ranks, std::shared_ptr<const comm::Topology> topology,
                       MPI_Comm* newcomm, int error) {
    const comm::ReferenceGuard kept(&base);
    Comm* made = nullptr;
    // A member with an error uses the whole group, since it may not know the number of nodes. The steps are the same for any number.
    comm::Group* members = error ? base.local_group().retain() : include(base.local_group(), ranks);
    error = collective::run(collective::create(base, *members, made, error));
    members->release();
    if (made) made->topology = std::move(topology);
    if (newcomm) *newcomm = comm::to_handle(made);
    return error ? raise(&base, error) : MPI_SUCCESS;
}

int bad_topology(Comm* comm) {
    return raise(comm, fail(MPI_ERR_TOPOLOGY,
                            "the communicator has no topology, or not the kind that this function requires; create one by "
                            "MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create"));
}

int Topo_test(MPI_Comm comm, int* status) {
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!status) return null_argument(c, "status");
    *status = c->topology ? c->topology->kind() : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int Dims_create(int nnodes, int ndims, int dims[]) {
    if (nnodes < 1) return raise(nullptr, fail(MPI_ERR_ARG, "the number of nodes, %d, is not positive", nnodes));
    if (ndims < 0 || (ndims == 0 && nnodes > 1))
        return raise(nullptr, fail(MPI_ERR_DIMS, "%d nodes cannot be distributed over %d dimensions", nnodes, ndims));
    if (ndims > 0 && !dims) return null_argument(nullptr, "dims");
    for (int i = 0; i < ndims; ++i)
        if (dims[i] < 0) return raise(nullptr, fail(MPI_ERR_DIMS, "dimension %d has the negative size %d", i, dims[i]));
    if (!comm::balance(nnodes, {dims, static_cast<size_t>(ndims)}))
        return raise(nullptr, fail(MPI_ERR_DIMS,
                                   "the number of nodes, %d, is not a multiple of the product of the sizes in dims", nnodes));
    return MPI_SUCCESS;
}

int Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm* comm_cart) {
    MakingLock lock;
    int error = MPI_SUCCESS, nodes = 0;
    Comm* base = topology_base(comm_old, error);
    if (!base) return error;
    if (!comm_cart || (ndims > 0 && !periods))
        error = null_pointer(comm_cart ? "periods" : "comm_cart");
    else
        error = count_nodes(ndims, dims, base->size, nodes);
    auto cart = grid_of(error ? 0 : ndims, dims, periods);
    const std::vector<int> ranks = ranks_of_grid(*base, *cart, error ? 0 : nodes, reorder != 0);
    return make_with_topology(*base, ranks, std::move(cart), comm_cart, error);
}

int Cartdim_get(MPI_Comm comm, int* ndims) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    if (!ndims) return null_argument(c, "ndims");
    *ndims = cart->dimensions();
    return MPI_SUCCESS;
}

int Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    const int count = std::min(maxdims, cart->dimensions());
    if (count > 0 && (!dims || !periods || !coords)) return null_argument(c, "dims, periods or coords");
    std::vector<int> mine(cart->dims.size());
    cart->coordinates(c->rank, mine.data());
    for (int i = 0; i < count; ++i) {
        const auto d = static_cast<size_t>(i);
        dims[i] = cart->dims[d];
        periods[i] = cart->periodic[d];
        coords[i] = mine[d];
    }
    return MPI_SUCCESS;
}

int Cart_rank(MPI_Comm comm, const int coords[], int* rank) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    if (!rank || (cart->dimensions() > 0 && !coords)) return null_argument(c, rank ? "coords" : "rank");
    const int found = cart->rank_at({coords, cart->dims.size()});
    if (found < 0) return raise(c, fail(MPI_ERR_ARG, "a coordinate is outside the grid, in a dimension that is not periodic"));
    *rank = found;
    return MPI_SUCCESS;
}

int Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    if (rank < 0 || rank >= c->size) return bad_rank(c, rank);
    const int count = std::min(maxdims, cart->dimensions());
    if (count > 0 && !coords) return null_argument(c, "coords");
    std::vector<int> all(cart->dims.size());
    cart->coordinates(rank, all.data());
    for (int i = 0; i < count; ++i) coords[i] = all[static_cast<size_t>(i)];
    return MPI_SUCCESS;
}

int Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    if (!rank_source || !rank_dest) return null_argument(c, rank_source ? "rank_dest" : "rank_source");
    if (direction < 0 || direction >= cart->dimensions()) return bad_dimension(c, direction, *cart);
    *rank_source = cart->neighbor(c->rank, direction, -int64_t{disp});
    *rank_dest = cart->neighbor(c->rank, direction, disp);
    return MPI_SUCCESS;
}

int Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = nullptr;
    int error = MPI_SUCCESS;
    const auto* cart = find_topology<CartTopology>(comm, c, error);
    if (!cart) return error;
    if (!newcomm || (cart->dimensions() > 0 && !remain_dims)) error = null_pointer(newcomm ? "remain_dims" : "newcomm");
    std::vector<int> coords(cart->dims.size());
    cart->coordinates(c->rank, coords.data());
    // The coordinates in removed dimensions form the color of the subgrid; those in the remaining ones form the rank in it.
    auto sub = std::make_shared<CartTopology>();
    int color = 0, key = 0;
    for (size_t i = 0; i < coords.size() && !error; ++i) {
        int& place = remain_dims[i] ? key : color;
        place = place * cart->dims[i] + coords[i];
        if (!remain_dims[i]) continue;
        sub->dims.push_back(cart->dims[i]);
        sub->periodic.push_back(cart->periodic[i]);
    }
    const comm::ReferenceGuard kept(c);
    Comm* made = nullptr;
    error = collective::run(collective::split(*c, color, key, made, error));
    if (made) made->topology = std::move(sub);
    if (newcomm) *newcomm = comm::to_handle(made);
    return error ? raise(c, error) : MPI_SUCCESS;
}

int Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank) {
    Lock lock;
    int error = MPI_SUCCESS, nodes = 0;
    Comm* base = topology_base(comm, error);
    if (!base) return error;
    if (!newrank) return null_argument(base, "newrank");
    // A grid without points has no coordinates for any process.
    const bool empty = dims && std::count(dims, dims + std::max(ndims, 0), 0) > 0;
    if (!empty) error = count_nodes(ndims, dims, base->size, nodes);
    if (error) return raise(base, error);
    *newrank =
        nodes == 0 ? MPI_UNDEFINED : node_of(base->rank, ranks_of_grid(*base, *grid_of(ndims, dims, periods), nodes, true));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
