#include <stdlib.h>
#include <string.h>

#include "mesh.h"

double* mesh_new_cells(const Mesh* mesh) { return calloc((size_t)(mesh->edge + 2) * (size_t)(mesh->edge + 2), sizeof(double)); }

static void create_cells(const Mesh* mesh, Leaf* leaf) {
    leaf->now = mesh_new_cells(mesh);
    leaf->next = mesh_new_cells(mesh);
}

static void free_leaves(Leaf* leaves, int count) {
    for (int i = 0; i < count; ++i) {
        free(leaves[i].now);
        free(leaves[i].next);
    }
    free(leaves);
}

Mesh mesh_create(MPI_Comm comm, const Mesh* shape) {
    Mesh mesh = {.comm = comm,
                 .base = shape->base,
                 .levels = shape->levels,
                 .edge = shape->edge,
                 .corners = shape->corners,
                 .scatter = shape->scatter,
                 .count = shape->base * shape->base};
    MPI_Comm_rank(comm, &mesh.rank);
    MPI_Comm_size(comm, &mesh.size);
    mesh.leaves = calloc((size_t)mesh.count, sizeof(Leaf));
    for (int i = 0; i < mesh.count; ++i) { /* the base is a power of two: the bits of the curve's index give x and y */
        int x = 0, y = 0;
        for (int bit = 0; bit < 15; ++bit) {
            x |= (i >> (2 * bit) & 1) << bit;
            y |= (i >> (2 * bit + 1) & 1) << bit;
        }
        mesh.leaves[i] = mesh_leaf(&mesh, 0, x, y);
    }
    mesh_set_owners(&mesh, mesh.leaves, mesh.count);
    for (int i = 0; i < mesh.count; ++i)
        if (mesh.leaves[i].owner == mesh.rank) create_cells(&mesh, &mesh.leaves[i]);
    mesh.plan = mesh_plan(&mesh);
    return mesh;
}

void mesh_free(Mesh* mesh) {
    mesh_plan_free(mesh->plan);
    free_leaves(mesh->leaves, mesh->count);
}

/* Cells to copy from an old leaf to a new one. Either all are copied, or a quarter is expanded to four times as many cells, or all are
 * reduced to the means of four. */
typedef struct {
    int from, to; /* old and new leaf */
    int number;   /* index of the piece among all pieces, used as the message's tag */
    double* buffer;
} Piece;

typedef struct {
    Piece* pieces;
    int count;
} Pieces;

static Pieces list_pieces(const Mesh* mesh, const Leaf* next, int count) {
    Pieces all = {malloc((size_t)(mesh->count + count) * sizeof(Piece)), 0};
    for (int to = 0, from = 0; to < count; ++to) {
        const Leaf* new = &next[to], *old = &mesh->leaves[from];
        int sources = old->level > new->level ? 4 : 1;
        for (int k = 0; k < sources; ++k) {
            all.pieces[all.count] = (Piece){from + k, to, all.count, NULL};
            ++all.count;
        }
        /* A refined leaf becomes four new leaves, of which the fourth is the last that copies from it. */
        int last = old->level >= new->level || (new->x % 2 && new->y % 2);
        if (last) from += sources;
    }
    return all;
}

static int piece_values(const Mesh* mesh, const Leaf* old, const Leaf* new) {
    return old->level == new->level ? mesh->edge * mesh->edge : mesh->edge * mesh->edge / 4;
}

static void take_out(const Mesh* mesh, const Leaf* old, const Leaf* new, double* buffer) {
    int n = mesh->edge, half = n / 2;
    if (old->level > new->level) {
        for (int i = 0; i < half * half; ++i) {
            int row = 1 + i / half * 2, column = 1 + i % half * 2;
            const double *upper = mesh_cell(mesh, old->now, row, column), *lower = mesh_cell(mesh, old->now, row + 1, column);
            buffer[i] = 0.25 * ((upper[0] + upper[1]) + (lower[0] + lower[1]));
        }
        return;
    }
    int side = old->level == new->level ? n : half;
    int row = side == n ? 1 : 1 + new->y % 2 * half, column = side == n ? 1 : 1 + new->x % 2 * half;
    for (int i = 0; i < side; ++i) {
        memcpy(buffer + i * side, mesh_cell(mesh, old->now, row + i, column), (size_t)side * sizeof(double));
    }
}

static void put_in(const Mesh* mesh, const Leaf* old, const Leaf* new, const double* buffer) {
    int n = mesh->edge, half = n / 2;
    if (old->level < new->level) {
        for (int i = 0; i < n * n; ++i) {
            *mesh_cell(mesh, new->now, 1 + i / n, 1 + i % n) = buffer[i / n / 2 * half + i % n / 2];
        }
        return;
    }
    int side = old->level == new->level ? n : half;
    int row = side == n ? 1 : 1 + old->y % 2 * half, column = side == n ? 1 : 1 + old->x % 2 * half;
    for (int i = 0; i < side; ++i) {
        memcpy(mesh_cell(mesh, new->now, row + i, column), buffer + i * side, (size_t)side * sizeof(double));
    }
}

/* Sends the cells of old leaves to the owners of the new leaves. */
static void move_cells(Mesh* mesh, Leaf* next, Pieces all) {
    MPI_Request* requests = malloc(((size_t)all.count + 1) * sizeof(MPI_Request));
    int posted = 0;
    for (int i = 0; i < all.count; ++i) {
        Piece* p = &all.pieces[i];
        const Leaf *old = &mesh->leaves[p->from], *new = &next[p->to];
        int values = piece_values(mesh, old, new);
        mesh->moved += old->owner != new->owner;
        if (old->owner != mesh->rank && new->owner != mesh->rank) continue;
        p->buffer = malloc((size_t)values * sizeof(double));
        if (old->owner == mesh->rank) take_out(mesh, old, new, p->buffer);
        if (old->owner == new->owner) continue;
        requests[posted] = MPI_REQUEST_NULL; /* stays so if the call fails */
        if (old->owner == mesh->rank) {
            mesh_note(mesh, MPI_Isend(p->buffer, values, MPI_DOUBLE, new->owner, p->number, mesh->comm, &requests[posted++]));
        } else {
            mesh_note(mesh, MPI_Irecv(p->buffer, values, MPI_DOUBLE, old->owner, p->number, mesh->comm, &requests[posted++]));
        }
    }
    mesh_note(mesh, MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < all.count; ++i) {
        const Piece* p = &all.pieces[i];
        if (next[p->to].owner == mesh->rank) { put_in(mesh, &mesh->leaves[p->from], &next[p->to], p->buffer); }
        free(p->buffer);
    }
    free(requests);
}

/* Exchanges the requested levels of all leaves. Each process sends those of its leaves in the order of the curve. */
static void share_targets(Mesh* mesh) {
    int* counts = calloc(3 * (size_t)mesh->size, sizeof(int));
    int *starts = counts + mesh->size, *next = starts + mesh->size, own = 0;
    int* targets = malloc(2 * (size_t)mesh->count * sizeof(int));
    for (int i = 0; i < mesh->count; ++i) ++counts[mesh->leaves[i].owner];
    for (int p = 1; p < mesh->size; ++p) next[p] = starts[p] = starts[p - 1] + counts[p - 1];
    for (int i = 0; i < mesh->count; ++i)
        if (mesh->leaves[i].owner == mesh->rank) targets[mesh->count + own++] = mesh->leaves[i].target;
    mesh_note(mesh, MPI_Allgatherv(targets + mesh->count, own, MPI_INT, targets, counts, starts, MPI_INT, mesh->comm));
    for (int i = 0; i < mesh->count && !mesh->error; ++i) mesh->leaves[i].target = targets[next[mesh->leaves[i].owner]++];
    free(counts);
    free(targets);
}

void mesh_regrid(Mesh* mesh) {
    double before = bench_now();
    int count;
    share_targets(mesh);
    if (mesh->error) return;
    mesh_settle_targets(mesh);
    Leaf* next = mesh_next_leaves(mesh, &count);
    for (int i = 0; i < count; ++i) {
        if (next[i].owner == mesh->rank) create_cells(mesh, &next[i]);
    }
    Pieces all = list_pieces(mesh, next, count);
    bench_require(all.count < 32767, "too many blocks for message tags");
    move_cells(mesh, next, all);
    free(all.pieces);
    free_leaves(mesh->leaves, mesh->count);
    mesh_plan_free(mesh->plan);
    mesh->leaves = next;
    mesh->count = count;
    mesh->plan = mesh_plan(mesh);
    mesh->regrid_seconds += bench_now() - before;
}
