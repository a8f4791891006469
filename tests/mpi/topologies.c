// Tests grids, graphs and distributed graphs: creation, inquiry, messages along the edges.
#include "check.h"

static int rank, size;
// Hides the two constants from the compiler, which would warn that they do not point to valid memory.
static int* volatile unweighted = MPI_UNWEIGHTED, * volatile weights_empty = MPI_WEIGHTS_EMPTY;
/* Each process specifies edges between other processes, some of them several times and some from a process to itself. Their weights
 * identify them. */
static void edges_of_others(int rank, int size) {
    enum { kEach = 40 };
    int sources[kEach], degrees[kEach], destinations[kEach], weights[kEach];
    int in = 0, out = 0, weighted, expected_in = 0, expected_out = 0;
    long in_sum = 0, out_sum = 0;
    for (int who = 0; who < size; who++)
        for (int i = 0; i < kEach; i++) {
            const int from = (who * 7 + i * 3) % size, to = (who + i * i) % size, weight = who * 1000 + i;
            if (who == rank) sources[i] = from, degrees[i] = 1, destinations[i] = to, weights[i] = weight;
            if (from == rank) expected_out++, out_sum += weight;
            if (to == rank) expected_in++, in_sum += weight;
        }
    MPI_Comm graph;
    MPI_Dist_graph_create(MPI_COMM_WORLD, kEach, sources, degrees, destinations, weights, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    CHECK(in == expected_in && out == expected_out && weighted);
    int *from = malloc(sizeof(int) * (in + 1)), *in_weights = malloc(sizeof(int) * (in + 1)),
        *got = malloc(sizeof(int) * (in + 1));
    int *to = malloc(sizeof(int) * (out + 1)), *out_weights = malloc(sizeof(int) * (out + 1));
    MPI_Dist_graph_neighbors(graph, in, from, in_weights, out, to, out_weights);
    for (int i = 0; i < in; i++) in_sum -= in_weights[i];
    for (int i = 0; i < out; i++) out_sum -= out_weights[i];
    CHECK(in_sum == 0 && out_sum == 0);
    /* Both processes must number the edges between them in the same order. */
    MPI_Neighbor_alltoall(out_weights, 1, MPI_INT, got, 1, MPI_INT, graph);
    for (int i = 0; i < in; i++) CHECK(got[i] == in_weights[i]);
    free(from), free(in_weights), free(got), free(to), free(out_weights);
    MPI_Comm_free(&graph);
}

/* One process passes wrong arguments: all processes return an error of its class, none hangs, and the next call succeeds. */
static void bad_arguments_of_one(int rank, int size) {
    MPI_Comm base, graph = MPI_COMM_NULL;
    int one = 1, negative = -1, beyond = size, weight = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &base));
    OK(MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN));
    for (int culprit = 0; culprit<size; culprit += size> 1 ? size - 1 : 1) {
        const int bad = rank == culprit;
        EXPECT_ERROR(MPI_Dist_graph_create(base, 1, &rank, bad ? &negative : &one, &rank, unweighted, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_ARG);
        EXPECT_ERROR(MPI_Dist_graph_create(base, bad ? -1 : 1, &rank, &one, &rank, unweighted, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_ARG);
        EXPECT_ERROR(MPI_Dist_graph_create(base, 1, &rank, &one, bad ? &beyond : &rank, unweighted, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_RANK);
        EXPECT_ERROR(MPI_Dist_graph_create(base, 1, bad ? &negative : &rank, &one, &rank, unweighted, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_RANK);
        EXPECT_ERROR(MPI_Dist_graph_create(base, 1, &rank, &one, &rank, bad ? &weight : &one, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_ARG);
        EXPECT_ERROR(MPI_Dist_graph_create(base, 1, &rank, bad ? NULL : &one, &rank, unweighted, MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_ARG);
        EXPECT_ERROR(MPI_Dist_graph_create_adjacent(base, 1, bad ? &beyond : &rank, unweighted, 1, &rank, unweighted,
                                                    MPI_INFO_NULL, 0, &graph),
                     MPI_ERR_RANK);
        EXPECT_ERROR(MPI_Dist_graph_create_adjacent(base, 1, &rank, unweighted, bad ? -1 : 1, &rank, unweighted, MPI_INFO_NULL,
                                                    0, &graph),
                     MPI_ERR_ARG);
        CHECK(graph == MPI_COMM_NULL);
    }
    OK(MPI_Dist_graph_create(base, 1, &rank, &one, &rank, unweighted, MPI_INFO_NULL, 0, &graph));
    OK(MPI_Comm_free(&graph));
    OK(MPI_Comm_free(&base));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dims[3] = {0, 0, 0}, periods[3] = {1, 0, 1}, coords[3], d2[3], p2[3], c2[3], r, st, nd;
    MPI_Comm cart, sub, d;
    MPI_Dims_create(size, 2, dims);
    CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
    MPI_Topo_test(cart, &st);
    CHECK(st == MPI_CART);
    MPI_Topo_test(MPI_COMM_WORLD, &st);
    CHECK(st == MPI_UNDEFINED);
    MPI_Cartdim_get(cart, &nd);
    CHECK(nd == 2);
    MPI_Cart_get(cart, 2, d2, p2, c2);
    CHECK(d2[0] == dims[0] && p2[0] == 1 && p2[1] == 0);
    int me;
    MPI_Comm_rank(cart, &me);
    MPI_Cart_coords(cart, me, 2, coords);
    CHECK(coords[0] == c2[0] && coords[1] == c2[1]);
    MPI_Cart_rank(cart, coords, &r);
    CHECK(r == me);
    int s, t, got = -1;
    MPI_Cart_shift(cart, 0, 1, &s, &t);
    MPI_Sendrecv(&me, 1, MPI_INT, t, 0, &got, 1, MPI_INT, s, 0, cart, MPI_STATUS_IGNORE);
    CHECK(got == s);
    MPI_Cart_shift(cart, 1, 1, &s, &t);
    CHECK((t == MPI_PROC_NULL) == (coords[1] == dims[1] - 1));
    int remain[2] = {0, 1};
    MPI_Cart_sub(cart, remain, &sub);
    MPI_Cart_get(sub, 1, d2, p2, c2);
    CHECK(d2[0] == dims[1] && c2[0] == coords[1]);
    int n;
    MPI_Comm_size(sub, &n);
    CHECK(n == dims[1]);
    MPI_Comm_dup(sub, &d);
    MPI_Topo_test(d, &st);
    CHECK(st == MPI_CART);
    MPI_Comm_free(&d);
    MPI_Comm_free(&sub);
    int none[2] = {0, 0};
    MPI_Cart_sub(cart, none, &sub);
    if (sub != MPI_COMM_NULL) {  // libraries differ: each process, or only the first, gets a grid of one point
        MPI_Comm_size(sub, &n);
        EXPECT_INT(n, 1);
        MPI_Cartdim_get(sub, &nd);
        EXPECT_INT(nd, 0);
        MPI_Comm_free(&sub);
    }
    MPI_Comm_free(&cart);
    if (size > 1) {
        int one[1] = {size - 1};
        MPI_Cart_create(MPI_COMM_WORLD, 1, one, periods, 0, &cart);
        CHECK((cart == MPI_COMM_NULL) == (rank == size - 1));
        if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
    }
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &cart);
    CHECK((cart != MPI_COMM_NULL) == (rank == 0));
    if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
    /* ring graph */
    int *index = malloc(sizeof(int) * size), *edges = malloc(2 * sizeof(int) * size);
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    MPI_Comm g;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &g);
    MPI_Topo_test(g, &st);
    CHECK(st == MPI_GRAPH);
    int nn, ne;
    MPI_Graphdims_get(g, &nn, &ne);
    CHECK(nn == size && ne == 2 * size);
    MPI_Graph_neighbors_count(g, rank, &n);
    CHECK(n == 2);
    int nb[2];
    MPI_Graph_neighbors(g, rank, 2, nb);
    CHECK(nb[0] == (rank + size - 1) % size && nb[1] == (rank + 1) % size);
    MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &r);
    CHECK(r == rank);
    MPI_Comm_free(&g);
    /* the same ring as a distributed graph: each rank specifies the edges of its right neighbor */
    int src = (rank + 1) % size, deg = 2, dst[2] = {(src + size - 1) % size, (src + 1) % size}, w[2] = {src, src + 100};
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &src, &deg, dst, w, MPI_INFO_NULL, 0, &g);
    MPI_Topo_test(g, &st);
    CHECK(st == MPI_DIST_GRAPH);
    int in, out, weighted;
    MPI_Dist_graph_neighbors_count(g, &in, &out, &weighted);
    CHECK(in == 2 && out == 2 && weighted);
    int ss[2], sw[2], ds[2], dw[2];
    MPI_Dist_graph_neighbors(g, 2, ss, sw, 2, ds, dw);
    for (int i = 0; i < 2; i++) CHECK(dw[i] == rank || dw[i] == rank + 100);
    for (int i = 0; i < 2; i++) CHECK(sw[i] == ss[i] || sw[i] == ss[i] + 100);
    MPI_Comm_free(&g);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &dst[0], unweighted, 1, &dst[1], unweighted, MPI_INFO_NULL, 0, &g);
    MPI_Dist_graph_neighbors_count(g, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && !weighted);
    MPI_Dist_graph_neighbors(g, 1, ss, unweighted, 1, ds, unweighted);
    CHECK(ss[0] == dst[0] && ds[0] == dst[1]);
    MPI_Comm_free(&g);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, weights_empty, 0, NULL, weights_empty, MPI_INFO_NULL, 0, &g);
    MPI_Comm_free(&g);
    edges_of_others(rank, size);
    bad_arguments_of_one(rank, size);
    MPI_Finalize();
    return 0;
}
