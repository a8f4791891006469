/* A square cut into blocks of equal numbers of cells, small blocks where much happens: leaves of a
 * quadtree. Every process knows all leaves and their owners; the cells of a leaf are only with its owner.
 * All decisions are made from what all know, so that they come out alike everywhere without being told. */
#ifndef MESH_H
#define MESH_H

#include <stdint.h>

#include "../../common/bench.h"

enum { kUp, kDown, kLeft, kRight, kFaces };

typedef struct {
    int level; /* 0: the coarsest; each one halves the side of a block */
    int x, y;  /* in blocks of that level */
    int owner;
    uint64_t key;       /* position on the curve; leaves never overlap, so these are distinct */
    int target;         /* the level wished for at the next regridding */
    double *now, *next; /* cells with a border of one around; NULL if owned elsewhere */
} Leaf;

typedef struct Plan Plan;

typedef struct {
    MPI_Comm comm;
    int rank, size;
    int base;     /* blocks along the square at level 0 */
    int levels;   /* finest level */
    int edge;     /* cells along a block, even */
    Leaf* leaves; /* along a space-filling curve */
    int count;
    Plan* plan; /* who sends which borders to whom */
    double ghost_seconds, regrid_seconds;
    long moved; /* blocks that changed their owner */
} Mesh;

Mesh mesh_create(MPI_Comm comm, int base, int levels, int edge);
void mesh_free(Mesh* mesh);

/* tree.c: places and neighbours */

/* A leaf at a place, without owner and cells. */
Leaf mesh_leaf(const Mesh* mesh, int level, int x, int y);
/* The leaf that contains a block of some level, or one of the leaves in it; -1: outside the square. */
int mesh_find(const Mesh* mesh, int level, int x, int y);
/* The one or two leaves across a face; returns how many (0 at the square's edge). */
int mesh_across(const Mesh* mesh, int leaf, int face, int found[2]);
/* Makes the targets such that neighbours differ by one level at most, and only whole groups of four merge.
 */
void mesh_settle_targets(Mesh* mesh);
/* The leaves that the targets ask for, with owners that have about equally many; cells are not there yet.
 */
Leaf* mesh_next_leaves(const Mesh* mesh, int* count);

/* exchange.c: borders */

/* Fills the borders of all own leaves. */
void mesh_exchange(Mesh* mesh);
Plan* mesh_plan(const Mesh* mesh);
void mesh_plan_free(Plan* plan);
/* Processes this one exchanges with: how many, and bit r % 64 set in word r / 64 for each. */
int mesh_partners(const Plan* plan, const uint64_t** set);

/* regrid.c: refinement, merging and load balance */

/* Follows the targets of the own leaves. */
void mesh_regrid(Mesh* mesh);

/* The cell of a block, (0, 0) to (edge + 1, edge + 1) with the border. */
static inline double* mesh_cell(const Mesh* mesh, double* cells, int row, int column) {
    return cells + (size_t)row * (size_t)(mesh->edge + 2) + column;
}
double* mesh_new_cells(const Mesh* mesh);

#endif
