#include <stdlib.h>

#include "mesh.h"

enum { kBorderTag = 11 };

/* One strip of cells: those that a leaf (block of cells) gets from one leaf on the other side of a face, or one cell beyond a corner. */
typedef struct {
    int from, to; /* leaves */
    int face;     /* face or corner of the receiving leaf */
    int half;     /* half of that face that the strip covers, if the sending leaf is finer; -1: the whole face */
} Strip;

/* The strips between this process and another one, in the same order on both sides; sent as one message. */
typedef struct {
    int process;
    Strip* strips;
    int count, values;
    double* buffer;
} Bundle;

struct Plan {
    Bundle *out, *in; /* bundles of strips to send and to receive, one per process, most of them empty */
    MPI_Request* requests;
    uint64_t* partners;
    int size, partner_count;
};

static int strip_values(const Mesh* mesh, const Strip* s) {
    if (s->face >= kCorners) return 1;
    return s->half < 0 ? mesh->edge : mesh->edge / 2;
}

static void add_strip(const Mesh* mesh, Bundle* bundle, Strip strip) {
    if ((bundle->count & (bundle->count - 1)) == 0) { /* the array is enlarged when its length is a power of two */
        size_t room = bundle->count ? 2 * (size_t)bundle->count : 1;
        bundle->strips = realloc(bundle->strips, room * sizeof(Strip));
    }
    bundle->strips[bundle->count++] = strip;
    bundle->values += strip_values(mesh, &strip);
}

static void note_partner(Plan* plan, int process) {
    uint64_t bit = (uint64_t)1 << (process % 64), *word = &plan->partners[process / 64];
    plan->partner_count += !(*word & bit);
    *word |= bit;
}

static void plan_strip(const Mesh* mesh, Plan* plan, Strip strip) {
    int sender = mesh->leaves[strip.from].owner, receiver = mesh->leaves[strip.to].owner;
    if (sender == mesh->rank) add_strip(mesh, &plan->out[receiver], strip);
    if (receiver == mesh->rank) add_strip(mesh, &plan->in[sender], strip);
}

Plan* mesh_plan(const Mesh* mesh) {
    Plan* plan = calloc(1, sizeof *plan);
    plan->size = mesh->size;
    plan->out = calloc((size_t)mesh->size, sizeof(Bundle));
    plan->in = calloc((size_t)mesh->size, sizeof(Bundle));
    plan->requests = malloc(2 * (size_t)mesh->size * sizeof(MPI_Request));
    plan->partners = calloc((size_t)mesh->size / 64 + 1, sizeof(uint64_t));
    for (int to = 0; to < mesh->count; ++to) {
        for (int face = 0; face < kFaces; ++face) {
            int across[2], n = mesh_across(mesh, to, face, across);
            for (int k = 0; k < n; ++k) plan_strip(mesh, plan, (Strip){across[k], to, face, n == 2 ? k : -1});
        }
        for (int corner = kCorners; mesh->corners && corner < kSides; ++corner) {
            int beyond = mesh_beyond_corner(mesh, to, corner);
            if (beyond >= 0) plan_strip(mesh, plan, (Strip){beyond, to, corner, -1});
        }
    }
    for (int p = 0; p < mesh->size; ++p) {
        plan->out[p].buffer = malloc((size_t)plan->out[p].values * sizeof(double));
        plan->in[p].buffer = p == mesh->rank ? plan->out[p].buffer : malloc((size_t)plan->in[p].values * sizeof(double));
        if (p != mesh->rank && (plan->out[p].count || plan->in[p].count)) note_partner(plan, p);
    }
    return plan;
}

void mesh_plan_free(Plan* plan) {
    for (int p = 0; p < plan->size; ++p) {
        if (plan->in[p].buffer != plan->out[p].buffer) free(plan->in[p].buffer);
        free(plan->out[p].buffer);
        free(plan->out[p].strips);
        free(plan->in[p].strips);
    }
    free(plan->out);
    free(plan->in);
    free(plan->requests);
    free(plan->partners);
    free(plan);
}

int mesh_partners(const Plan* plan, const uint64_t** set) {
    *set = plan->partners;
    return plan->partner_count;
}

/* Returns the cell at depth d (0: at the face) and position i along a face. */
static double cell_at_face(const Mesh* mesh, double* cells, int face, int d, int i) {
    int n = mesh->edge;
    switch (face) {
        case kUp:
            return *mesh_cell(mesh, cells, 1 + d, 1 + i);
        case kDown:
            return *mesh_cell(mesh, cells, n - d, 1 + i);
        case kLeft:
            return *mesh_cell(mesh, cells, 1 + i, 1 + d);
        default:
            return *mesh_cell(mesh, cells, 1 + i, n - d);
    }
}

/* Returns the value of the cell beyond a corner of the receiver: the sender's cell there, or the mean of its smaller ones. */
static double cell_beyond_corner(const Mesh* mesh, const Strip* s) {
    const Leaf *from = &mesh->leaves[s->from], *to = &mesh->leaves[s->to];
    int right = (s->face - kCorners) & 1, lower = (s->face - kCorners) >> 1, n = mesh->edge;
    int column = right ? (to->x + 1) * n : to->x * n - 1, row = lower ? (to->y + 1) * n : to->y * n - 1;
    int finer = from->level > to->level ? from->level - to->level : 0,
        coarser = from->level < to->level ? to->level - from->level : 0;
    int across = 1 << finer;
    column = (column << finer >> coarser) - from->x * n;
    row = (row << finer >> coarser) - from->y * n;
    double sum = 0;
    for (int r = 0; r < across; ++r)
        for (int c = 0; c < across; ++c) sum += *mesh_cell(mesh, from->now, 1 + row + r, 1 + column + c);
    return sum / (across * across);
}

/* Packs the cells that the receiver stores beyond its face; the sender's face is the opposite one. */
static double* pack(const Mesh* mesh, const Strip* s, double* buffer) {
    const Leaf *from = &mesh->leaves[s->from], *to = &mesh->leaves[s->to];
    if (s->face >= kCorners) {
        *buffer = cell_beyond_corner(mesh, s);
        return buffer + 1;
    }
    int face = s->face ^ 1, half = mesh->edge / 2;
    if (from->level == to->level) {
        for (int i = 0; i < mesh->edge; ++i) *buffer++ = cell_at_face(mesh, from->now, face, 0, i);
    } else if (from->level < to->level) { /* each of the sender's cells is adjacent to two cells of the receiver */
        int first = (s->face < kLeft ? to->x : to->y) % 2 * half;
        for (int i = 0; i < mesh->edge; ++i) *buffer++ = cell_at_face(mesh, from->now, face, 0, first + i / 2);
    } else { /* the mean of four of the sender's cells becomes one cell of the receiver */
        for (int i = 0; i < half; ++i) {
            double near = cell_at_face(mesh, from->now, face, 0, 2 * i) + cell_at_face(mesh, from->now, face, 0, 2 * i + 1);
            double far = cell_at_face(mesh, from->now, face, 1, 2 * i) + cell_at_face(mesh, from->now, face, 1, 2 * i + 1);
            *buffer++ = 0.25 * (near + far);
        }
    }
    return buffer;
}

static const double* unpack(const Mesh* mesh, const Strip* s, const double* buffer) {
    double* cells = mesh->leaves[s->to].now;
    int count = strip_values(mesh, s), first = 1 + (s->half > 0 ? count : 0), last = mesh->edge + 1;
    if (s->face >= kCorners) {
        *mesh_cell(mesh, cells, (s->face - kCorners) >> 1 ? last : 0, (s->face - kCorners) & 1 ? last : 0) = *buffer;
        return buffer + 1;
    }
    for (int i = first; i < first + count; ++i) {
        int row = s->face == kUp ? 0 : s->face == kDown ? last : i;
        int column = s->face == kLeft ? 0 : s->face == kRight ? last : i;
        *mesh_cell(mesh, cells, row, column) = *buffer++;
    }
    return buffer;
}

static void pack_all(const Mesh* mesh, const Bundle* bundle) {
    double* place = bundle->buffer;
    for (int i = 0; i < bundle->count; ++i) place = pack(mesh, &bundle->strips[i], place);
}

static void unpack_all(const Mesh* mesh, const Bundle* bundle) {
    const double* place = bundle->buffer;
    for (int i = 0; i < bundle->count; ++i) place = unpack(mesh, &bundle->strips[i], place);
}

/* Copies a leaf's own cells to its corners outside the square. */
static void mirror_corners(const Mesh* mesh, int leaf) {
    double* c = mesh->leaves[leaf].now;
    int last = mesh->edge + 1;
    for (int corner = kCorners; corner < kSides; ++corner) {
        int right = (corner - kCorners) & 1, lower = (corner - kCorners) >> 1;
        if (mesh_beyond_corner(mesh, leaf, corner) >= 0) continue;
        *mesh_cell(mesh, c, lower ? last : 0, right ? last : 0) =
            *mesh_cell(mesh, c, lower ? last - 1 : 1, right ? last - 1 : 1);
    }
}

/* Copies the cells at the edge of the square to the border outside of it, so that no heat flows through the edge. */
static void mirror_edges(const Mesh* mesh) {
    int last = mesh->edge + 1;
    for (int l = 0; l < mesh->count; ++l) {
        const Leaf* leaf = &mesh->leaves[l];
        int side = (mesh->base << leaf->level) - 1;
        if (mesh->corners && leaf->now) mirror_corners(mesh, l);
        for (int i = 1; i < last && leaf->now; ++i) {
            double* c = leaf->now;
            if (leaf->y == 0) *mesh_cell(mesh, c, 0, i) = *mesh_cell(mesh, c, 1, i);
            if (leaf->y == side) *mesh_cell(mesh, c, last, i) = *mesh_cell(mesh, c, last - 1, i);
            if (leaf->x == 0) *mesh_cell(mesh, c, i, 0) = *mesh_cell(mesh, c, i, 1);
            if (leaf->x == side) *mesh_cell(mesh, c, i, last) = *mesh_cell(mesh, c, i, last - 1);
        }
    }
}

void mesh_exchange(Mesh* mesh) {
    Plan* plan = mesh->plan;
    double before = bench_now();
    int posted = 0;
    for (int p = 0; p < mesh->size; ++p) {
        if (p == mesh->rank || !plan->in[p].count) continue;
        plan->requests[posted] = MPI_REQUEST_NULL; /* stays so if the call fails */
        mesh_note(mesh, MPI_Irecv(plan->in[p].buffer, plan->in[p].values, MPI_DOUBLE, p, kBorderTag, mesh->comm,
                                  &plan->requests[posted++]));
    }
    for (int p = 0; p < mesh->size; ++p) {
        pack_all(mesh, &plan->out[p]);
        if (p == mesh->rank || !plan->out[p].count) continue;
        plan->requests[posted] = MPI_REQUEST_NULL;
        mesh_note(mesh, MPI_Isend(plan->out[p].buffer, plan->out[p].values, MPI_DOUBLE, p, kBorderTag, mesh->comm,
                                  &plan->requests[posted++]));
    }
    unpack_all(mesh, &plan->in[mesh->rank]);
    mirror_edges(mesh);
    mesh_note(mesh, MPI_Waitall(posted, plan->requests, MPI_STATUSES_IGNORE));
    for (int p = 0; p < mesh->size; ++p) {
        if (p != mesh->rank) unpack_all(mesh, &plan->in[p]);
    }
    mesh->ghost_seconds += bench_now() - before;
}
