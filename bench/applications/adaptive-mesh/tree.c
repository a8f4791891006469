#include <stdlib.h>

#include "mesh.h"

/* Interleaves the bits of two numbers to an index on the space-filling curve. Blocks that are close in the square are mostly close on the
 * curve. */
static uint64_t interleave(uint32_t x, uint32_t y) {
    uint64_t key = 0;
    for (int bit = 0; bit < 31; ++bit) {
        key |= (uint64_t)(x >> bit & 1) << (2 * bit) | (uint64_t)(y >> bit & 1) << (2 * bit + 1);
    }
    return key;
}

static uint64_t key_of(const Mesh* mesh, int level, int x, int y) {
    int up = mesh->levels - level;
    return interleave((uint32_t)x << up, (uint32_t)y << up);
}

Leaf mesh_leaf(const Mesh* mesh, int level, int x, int y) {
    Leaf leaf = {level, x, y, 0, key_of(mesh, level, x, y), level, NULL, NULL};
    return leaf;
}

int mesh_find(const Mesh* mesh, int level, int x, int y) {
    int side = mesh->base << level, low = 0, high = mesh->count - 1;
    if (x < 0 || y < 0 || x >= side || y >= side) return -1;
    uint64_t key = key_of(mesh, level, x, y);
    while (low < high) { /* finds the last leaf that begins at or before the key */
        int middle = (low + high + 1) / 2;
        if (mesh->leaves[middle].key <= key) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

int mesh_across(const Mesh* mesh, int leaf, int face, int found[2]) {
    const Leaf* l = &mesh->leaves[leaf];
    int dx = face == kLeft ? -1 : face == kRight ? 1 : 0, dy = face == kUp ? -1 : face == kDown ? 1 : 0;
    int x = l->x + dx, y = l->y + dy;
    found[0] = mesh_find(mesh, l->level, x, y);
    if (found[0] < 0) return 0;
    if (mesh->leaves[found[0]].level <= l->level) return 1;
    for (int half = 0; half < 2; ++half) { /* visits the two small blocks that touch the face */
        int fine_x = dx ? 2 * x + (dx < 0) : 2 * x + half, fine_y = dy ? 2 * y + (dy < 0) : 2 * y + half;
        found[half] = mesh_find(mesh, l->level + 1, fine_x, fine_y);
    }
    return 2;
}

int mesh_beyond_corner(const Mesh* mesh, int leaf, int corner) {
    const Leaf* l = &mesh->leaves[leaf];
    int up = mesh->levels - l->level, right = (corner - kCorners) & 1, lower = (corner - kCorners) >> 1;
    int x = right ? (l->x + 1) << up : (l->x << up) - 1, y = lower ? (l->y + 1) << up : (l->y << up) - 1;
    return mesh_find(mesh, mesh->levels, x, y);
}

/* A leaf's place in the order in which scattered leaves are dealt. */
typedef struct {
    uint64_t hash;
    int leaf;
} Draw;

static int compare_draws(const void* a, const void* b) {
    const Draw *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : x->leaf - y->leaf;
}

void mesh_set_owners(const Mesh* mesh, Leaf* leaves, int count) {
    for (int i = 0; i < count && !mesh->scatter; ++i) leaves[i].owner = (int)((long)i * mesh->size / count);
    if (!mesh->scatter) return;
    Draw* order = malloc((size_t)count * sizeof *order);
    for (int i = 0; i < count; ++i) {
        uint64_t hash = (leaves[i].key * 8 + (uint64_t)leaves[i].level + 1) * 0x9e3779b97f4a7c15u;
        order[i] = (Draw){(hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u, i};
    }
    qsort(order, (size_t)count, sizeof *order, compare_draws);
    for (int i = 0; i < count; ++i) leaves[order[i].leaf].owner = i % mesh->size;
    free(order);
}

/* Returns whether leaf i is the first of four leaves that can be merged. */
static int four_merge(const Mesh* mesh, int i) {
    const Leaf* first = &mesh->leaves[i];
    if (first->level == 0 || first->x % 2 || first->y % 2 || i + 3 >= mesh->count) return 0;
    for (int k = 0; k < 4; ++k) {
        const Leaf* l = &mesh->leaves[i + k];
        if (l->level != first->level || l->x / 2 != first->x / 2 || l->y / 2 != first->y / 2 || l->target >= l->level) {
            return 0;
        }
    }
    return 1;
}

static int raise_beside_finer(Mesh* mesh) {
    int raised = 0;
    for (int i = 0; i < mesh->count; ++i) {
        for (int face = 0; face < kFaces; ++face) {
            int across[2], n = mesh_across(mesh, i, face, across);
            for (int k = 0; k < n; ++k) {
                int least = mesh->leaves[across[k]].target - 1;
                if (mesh->leaves[i].target >= least) continue;
                mesh->leaves[i].target = least;
                raised = 1;
            }
        }
    }
    return raised;
}

static int keep_incomplete_fours(Mesh* mesh) {
    int kept = 0;
    for (int i = 0; i < mesh->count; ++i) {
        Leaf* l = &mesh->leaves[i];
        if (l->target >= l->level) continue;
        if (four_merge(mesh, i)) {
            i += 3;
            continue;
        }
        l->target = l->level;
        kept = 1;
    }
    return kept;
}

void mesh_settle_targets(Mesh* mesh) {
    int changed = 1;
    while (changed) {
        changed = raise_beside_finer(mesh);
        changed |= keep_incomplete_fours(mesh);
    }
}

Leaf* mesh_next_leaves(const Mesh* mesh, int* count) {
    Leaf* next = malloc(4 * (size_t)mesh->count * sizeof *next);
    int n = 0;
    for (int i = 0; i < mesh->count; ++i) {
        const Leaf* l = &mesh->leaves[i];
        if (l->target == l->level) {
            next[n++] = mesh_leaf(mesh, l->level, l->x, l->y);
        } else if (l->target > l->level) {
            for (int k = 0; k < 4; ++k) { next[n++] = mesh_leaf(mesh, l->level + 1, 2 * l->x + k % 2, 2 * l->y + k / 2); }
        } else if (l->x % 2 == 0 && l->y % 2 == 0) {
            next[n++] = mesh_leaf(mesh, l->level - 1, l->x / 2, l->y / 2);
        }
    }
    mesh_set_owners(mesh, next, n);
    *count = n;
    return next;
}
