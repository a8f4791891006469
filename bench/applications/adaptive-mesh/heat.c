#include "mesh.h"

static double size_of(double x) { return x < 0 ? -x : x; }

/* Returns a value that swings between -1 and 1, with one period while `share` grows by 1. */
static double swing(double share) { return size_of(4 * (share - (long)share) - 2) - 1; }

void mesh_lamp(double share, double* x, double* y) {
    *x = 0.5 + 0.3 * swing(share);
    *y = 0.5 + 0.3 * swing(share + 0.25);
}

void mesh_heat(const Mesh* mesh, Leaf* leaf, double lamp_x, double lamp_y) {
    double width = 1.0 / ((double)(mesh->base << leaf->level) * mesh->edge);
    double pace = 0.2 / (double)(1 << 2 * (mesh->levels - leaf->level));
    for (int r = 1; r <= mesh->edge; ++r) {
        double* c = mesh_cell(mesh, leaf->now, r, 0);
        double *above = mesh_cell(mesh, leaf->now, r - 1, 0), *below = mesh_cell(mesh, leaf->now, r + 1, 0);
        double* next = mesh_cell(mesh, leaf->next, r, 0);
        double y = ((double)leaf->y * mesh->edge + r - 0.5) * width - lamp_y;
        for (int k = 1; k <= mesh->edge; ++k) {
            double x = ((double)leaf->x * mesh->edge + k - 0.5) * width - lamp_x;
            double near = 1 - (x * x + y * y) * 400; /* positive within the lamp's radius, 1/20 of the square */
            double flow = (above[k] + below[k]) + (c[k - 1] + c[k + 1]) - 4 * c[k];
            if (mesh->corners) flow = (4 * flow + (above[k - 1] + above[k + 1]) + (below[k - 1] + below[k + 1]) - 4 * c[k]) / 6;
            next[k] = 0.98 * (c[k] + pace * flow) + (near > 0 ? 0.1 * near : 0);
        }
    }
    double* kept = leaf->now;
    leaf->now = leaf->next;
    leaf->next = kept;
}

int mesh_wished_level(const Mesh* mesh, const Leaf* leaf) {
    double largest = 0;
    for (int r = 1; r <= mesh->edge; ++r) {
        for (int k = 1; k < mesh->edge; ++k) {
            double across = size_of(*mesh_cell(mesh, leaf->now, r, k + 1) - *mesh_cell(mesh, leaf->now, r, k));
            double along = size_of(*mesh_cell(mesh, leaf->now, k + 1, r) - *mesh_cell(mesh, leaf->now, k, r));
            if (across > largest) largest = across;
            if (along > largest) largest = along;
        }
    }
    if (largest > 0.05 && leaf->level < mesh->levels) return leaf->level + 1;
    if (largest < 0.01 && leaf->level > 0) return leaf->level - 1;
    return leaf->level;
}
