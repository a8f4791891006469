/* Topologies whose ranks may be reordered, over several hosts with as many ranks on each. Prints for each topology, with and without
 * reorder, how many of its edges join different hosts: "grid 12 8". Each process checks that its neighbors are those of its new rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { kMostNeighbors = 8 };
static int size, host;

static void check(int right, const char* what) {
    if (right) return;
    fprintf(stderr, "reorder: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Returns the number of neighbors on other hosts, of all processes, and checks that the neighbors have the expected numbers. */
static int edges_between_hosts(MPI_Comm comm, int degree, const int expected[]) {
    int mine[2], rank, between = 0, all;
    int (*theirs)[2] = malloc(sizeof(int[2]) * kMostNeighbors);
    MPI_Comm_rank(comm, &rank);
    mine[0] = rank;
    mine[1] = host;
    memset(theirs, -1, sizeof(int[2]) * kMostNeighbors);
    MPI_Neighbor_allgather(mine, 2, MPI_INT, theirs, 2, MPI_INT, comm);
    for (int i = 0; i < degree; ++i) {
        if (expected[i] == MPI_PROC_NULL) continue;
        check(theirs[i][0] == expected[i], "a neighbor is not the one of the new rank");
        between += theirs[i][1] != host;
    }
    free(theirs);
    MPI_Allreduce(&between, &all, 1, MPI_INT, MPI_SUM, comm);
    return all / 2;
}

static int grid(int reorder) {
    int dims[2] = {0, 0}, periods[2] = {0, 0}, neighbors[4], rank, mapped;
    MPI_Comm comm;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &mapped);
    check(!reorder || mapped == rank, "MPI_Cart_map returns another rank than MPI_Cart_create gives");
    for (int d = 0; d < 2; ++d) MPI_Cart_shift(comm, d, 1, &neighbors[2 * d], &neighbors[2 * d + 1]);
    const int between = edges_between_hosts(comm, 4, neighbors);
    MPI_Comm_free(&comm);
    return between;
}

/* Nodes far apart have heavy edges, and adjacent ones light edges. */
enum { kDegree = 4 };
static void partners_of(int node, int partners[], int weights[]) {
    const int steps[kDegree] = {size / 2, -(size / 2), 1, -1};
    for (int i = 0; i < kDegree; ++i) {
        partners[i] = (node + steps[i] + size) % size;
        weights[i] = i < 2 ? 1000 : 1;
    }
}

static int adjacent(int reorder) {
    int partners[kDegree], weights[kDegree], in[kDegree], in_weights[kDegree], out[kDegree], out_weights[kDegree], rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    partners_of(rank, partners, weights);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, kDegree, partners, weights, kDegree, partners, weights, MPI_INFO_NULL, reorder, &comm);
    MPI_Comm_rank(comm, &rank);
    partners_of(rank, partners, weights);
    MPI_Dist_graph_neighbors(comm, kDegree, in, in_weights, kDegree, out, out_weights);
    for (int i = 0; i < kDegree; ++i) {
        check(in[i] == partners[i] && out[i] == partners[i], "the edges are not those of the new rank, or in another order");
        check(in_weights[i] == weights[i] && out_weights[i] == weights[i], "the weights are not those of the new rank");
    }
    const int between = edges_between_hosts(comm, 2, partners);  /* the heavy edges come first */
    MPI_Comm_free(&comm);
    return between;
}

static int from_one(int reorder) {
    int rank, in = 0, out = 0, weighted, neighbors[kDegree], ignored[kDegree];
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int nodes = rank == 0 ? size : 0;
    int* sources = malloc(sizeof(int) * (size_t)(nodes + 1));
    int* degrees = malloc(sizeof(int) * (size_t)(nodes + 1));
    int* to = malloc(sizeof(int) * (size_t)(nodes + 1));
    for (int node = 0; node < nodes; ++node) {
        sources[node] = node;
        degrees[node] = 1;
        to[node] = (node + size / 2) % size;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, nodes, sources, degrees, to, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    check(in == 1 && out == 1 && !weighted, "MPI_Dist_graph_create gives another number of edges");
    MPI_Dist_graph_neighbors(comm, 1, neighbors, MPI_UNWEIGHTED, 1, ignored, MPI_UNWEIGHTED);
    check(neighbors[0] == (rank + size / 2) % size, "MPI_Dist_graph_create gives another neighbor");
    const int between = edges_between_hosts(comm, 1, neighbors);
    free(sources);
    free(degrees);
    free(to);
    MPI_Comm_free(&comm);
    return between;
}

static int graph(int reorder) {
    int rank;
    MPI_Comm comm;
    int* ends = malloc(sizeof(int) * (size_t)size);
    int* edges = malloc(sizeof(int) * (size_t)size);
    for (int node = 0; node < size; ++node) {
        ends[node] = node + 1;
        edges[node] = (node + size / 2) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, reorder, &comm);
    MPI_Comm_rank(comm, &rank);
    const int between = edges_between_hosts(comm, 1, &edges[rank]);
    free(ends);
    free(edges);
    MPI_Comm_free(&comm);
    return between;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        int (*run)(int reorder);
    } all[] = {{"grid", grid}, {"adjacent", adjacent}, {"from-one", from_one}, {"graph", graph}};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* The number of a host is the lowest rank on it. */
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Allreduce(&rank, &host, 1, MPI_INT, MPI_MIN, here);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
        const int before = all[i].run(0), after = all[i].run(1);
        if (rank == 0) printf("%s %d %d\n", all[i].name, before, after);
    }
    MPI_Comm_free(&here);
    MPI_Finalize();
    return 0;
}
