/* A square divided into blocks of equal numbers of cells, the leaves of a quadtree, with small blocks where the values change quickly.
 * Every process knows all leaves and their owners, but only the owner has the cells of a leaf. All decisions depend only on common
 * knowledge, so all processes decide alike without communication. */
#ifndef MESH_H
#define MESH_H

#include <stdint.h>

#include "../../common/bench.h"

enum { kUp, kDown, kLeft, kRight, kFaces };
/* Corners continue the numbers of the faces: bit 0 of (corner - kFaces) is set on the right side, bit 1 on the lower one. */
enum { kCorners = kFaces, kSides = kFaces + 4 };

typedef struct {
    int level; /* level of refinement; 0 is the coarsest, and each level halves the side of a block */
    int x, y;  /* position of the block, in blocks of its level */
    int owner;
    uint64_t key;       /* position of the leaf on the curve, distinct because leaves never overlap */
    int target;         /* level requested for the leaf at the next regridding */
    double *now, *next; /* cells with a border of one around them; NULL in leaves of other owners */
} Leaf;

typedef struct Plan Plan;

typedef struct {
    MPI_Comm comm;
    int rank, size;
    int base;     /* number of blocks along the square at level 0 */
    int levels;   /* number of the finest level */
    int edge;     /* number of cells along a block, even */
    int corners;  /* whether blocks also exchange their corners */
    int scatter;  /* whether owners are drawn without regard to neighbors */
    Leaf* leaves; /* all leaves, in the order of a space-filling curve */
    int count;
    Plan* plan; /* messages for the borders: sender, receiver, leaves */
    double ghost_seconds, regrid_seconds;
    long moved; /* number of blocks that changed their owner */
    int error;  /* first error of MPI, if it returns errors: the cells are undefined then */
} Mesh;

/* Creates the mesh that `shape` describes by base, levels, edge, corners and scatter, with all blocks at level 0. */
Mesh mesh_create(MPI_Comm comm, const Mesh* shape);
void mesh_free(Mesh* mesh);

/* --- tree.c: positions and neighbors --- */

/* Returns a leaf at a position, without owner and cells. */
Leaf mesh_leaf(const Mesh* mesh, int level, int x, int y);
/* Returns the leaf that contains a block of some level, or one of the leaves in it; -1: outside the square. */
int mesh_find(const Mesh* mesh, int level, int x, int y);
/* Finds the one or two leaves across a face; returns their number (0 at the square's edge). */
int mesh_across(const Mesh* mesh, int leaf, int face, int found[2]);
/* Returns the leaf that touches a corner from the other side; -1: outside the square. */
int mesh_beyond_corner(const Mesh* mesh, int leaf, int corner);
/* Sets the owners of `count` leaves: sections of the curve, or, with `scatter`, equal numbers of leaves in an order that a hash of their
 * positions determines. Codes that balance boxes by their weights alone distribute them as scatter does. */
void mesh_set_owners(const Mesh* mesh, Leaf* leaves, int count);
/* Adjusts the requested levels (`target`) so that neighbors differ by at most one level, and leaves are merged only in complete groups of
 * four. */
void mesh_settle_targets(Mesh* mesh);
/* Returns the leaves that the requested levels (`target`) describe, distributed evenly over the owners; they have no cells yet. */
Leaf* mesh_next_leaves(const Mesh* mesh, int* count);

/* --- exchange.c: borders --- */

/* Fills the borders of all leaves that this process owns. */
void mesh_exchange(Mesh* mesh);
Plan* mesh_plan(const Mesh* mesh);
void mesh_plan_free(Plan* plan);
/* Returns the number of processes with which this process exchanges borders; bit r % 64 of word r / 64 of `set` is set for each such rank
 * r. */
int mesh_partners(const Plan* plan, const uint64_t** set);

/* --- regrid.c: refinement, merging and load balance --- */

/* Refines and merges leaves to the levels requested by their owners. */
void mesh_regrid(Mesh* mesh);

/* --- heat.c: what the mesh computes --- */

/* Returns the position of the lamp after the share `share` of the run: it follows a square that stands on a corner. */
void mesh_lamp(double share, double* x, double* y);
/* Computes one explicit step of a leaf's own cells: diffusion at the finest level's rate, the lamp, and cooling. */
void mesh_heat(const Mesh* mesh, Leaf* leaf, double lamp_x, double lamp_y);
/* Returns the level that a leaf should have: a finer one if neighboring cells differ much, a coarser one if they hardly differ. */
int mesh_wished_level(const Mesh* mesh, const Leaf* leaf);

/* Returns the cell of a block, (0, 0) to (edge + 1, edge + 1) with the border. */
static inline double* mesh_cell(const Mesh* mesh, double* cells, int row, int column) {
    return cells + (size_t)row * (size_t)(mesh->edge + 2) + column;
}
double* mesh_new_cells(const Mesh* mesh);

/* Notes the code that a call of MPI has returned. */
static inline void mesh_note(Mesh* mesh, int code) {
    if (!mesh->error) mesh->error = code;
}

#endif
