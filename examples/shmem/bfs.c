// Breadth-first search in a Kronecker graph, with MPI and OpenSHMEM in one program. MPI makes and distributes the edges, PEs claim vertices
// by compare and swap in the owner's memory, and each level ends with an MPI reduction. The tree is validated: every parent is connected by
// an edge and one level nearer to the root, and the number of vertices reached is that of a serial search. oshrun -n 4 bfs [scale] [edges
// for each vertex]
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct edge {
    int from, to;
};

static unsigned long next_random(unsigned long* state) {
    unsigned long z = (*state += 0x9e3779b97f4a7c15ul);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return z ^ (z >> 31);
}

// Chooses the end points of an edge. The probabilities of the four quadrants are those of the Graph500: 0.57, 0.19, 0.19, 0.05.
static struct edge kronecker(int scale, long index) {
    unsigned long state = (unsigned long)index * 77 + 5;
    struct edge e = {0, 0};
    for (int bit = 0; bit < scale; bit++) {
        const unsigned long r = next_random(&state) % 100;
        e.from = 2 * e.from + (r >= 76);
        e.to = 2 * e.to + ((r >= 57 && r < 76) || r >= 95);
    }
    return e;
}

// Makes the adjacency lists, with each edge in both directions: the neighbors of vertex v are to[begin[v]] … to[begin[v + 1] - 1].
static void make_lists(int scale, long edges, int first, int count, long** begin, int** to) {
    *begin = calloc((size_t)count + 2, sizeof(long));
    for (int pass = 0; pass < 2; pass++) {
        for (long i = 0; i < edges; i++) {
            const struct edge e = kronecker(scale, i);
            const int ends[2][2] = {{e.from, e.to}, {e.to, e.from}};
            for (int way = 0; way < 2; way++) {
                const int v = ends[way][0] - first;
                if (v < 0 || v >= count || e.from == e.to) continue;
                if (pass == 0)
                    (*begin)[v + 2]++;
                else
                    (*to)[(*begin)[v + 1]++] = ends[way][1];
            }
        }
        if (pass == 1) break;
        for (int v = 0; v < count; v++) (*begin)[v + 2] += (*begin)[v + 1];
        *to = malloc(sizeof(int) * (size_t)(*begin)[count + 1] + 1);
    }
}

static long reached_alone(int scale, long edges, int root) {
    const int n = 1 << scale;
    long* begin;
    int* to;
    make_lists(scale, edges, 0, n, &begin, &to);
    int* queue = malloc(sizeof(int) * (size_t)n);
    char* seen = calloc((size_t)n, 1);
    long head = 0, tail = 0;
    queue[tail++] = root;
    seen[root] = 1;
    while (head < tail) {
        const int v = queue[head++];
        for (long k = begin[v]; k < begin[v + 1]; k++)
            if (!seen[to[k]]) seen[to[k]] = 1, queue[tail++] = to[k];
    }
    free(begin);
    free(to);
    free(queue);
    free(seen);
    return tail;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const int scale = argc > 1 ? atoi(argv[1]) : 10, n = 1 << scale;
    const long edges = (argc > 2 ? atol(argv[2]) : 16) * n;
    const int each = (n + pes - 1) / pes, first = me * each, count = first + each <= n ? each : first < n ? n - first : 0;
    long* begin;
    int* to;
    make_lists(scale, edges, first, count, &begin, &to);
    const int root = kronecker(scale, 0).from;
    int* parent = shmem_malloc(sizeof(int) * (size_t)each);
    int* level = shmem_malloc(sizeof(int) * (size_t)each);
    int* queue = shmem_malloc(sizeof(int) * (size_t)each);
    int* tail = shmem_calloc(1, sizeof *tail);
    for (int v = 0; v < each; v++) parent[v] = level[v] = -1;
    if (root / each == me) parent[root % each] = root, level[root % each] = 0, queue[(*tail)++] = root % each;
    int head = 0, end = *tail, depth = 0;  // `end` is read before other PEs add to the queue
    shmem_barrier_all();
    for (long more = 1; more > 0; depth++) {
        for (; head < end; head++)
            for (long k = begin[queue[head]]; k < begin[queue[head] + 1]; k++) {
                const int pe = to[k] / each, v = to[k] % each;
                if (shmem_int_g(&parent[v], pe) >= 0 ||
                    shmem_int_atomic_compare_swap(&parent[v], -1, first + queue[head], pe) != -1)
                    continue;
                shmem_int_p(&level[v], depth + 1, pe);
                shmem_int_p(&queue[shmem_int_atomic_fetch_inc(tail, pe)], v, pe);
            }
        shmem_barrier_all();
        end = *tail;
        const long mine = end - head;
        MPI_Allreduce(&mine, &more, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    long wrong = 0, reached = *tail, all = 0;
    for (int v = 0; v < count; v++) {
        if (parent[v] < 0 || first + v == root) continue;
        int is_edge = 0;
        for (long k = begin[v]; k < begin[v + 1]; k++) is_edge |= to[k] == parent[v];
        wrong += !is_edge || shmem_int_g(&level[parent[v] % each], parent[v] / each) != level[v] - 1;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&reached, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) {
        wrong += all != reached_alone(scale, edges, root);
        printf("%d vertices, %ld edges on %d PEs: %ld reached in %d levels, %s\n", n, edges, pes, all, depth,
               wrong ? "WRONG" : "as in the serial run");
    }
    shmem_barrier_all();
    shmem_finalize();
    MPI_Finalize();
    return wrong != 0;
}
