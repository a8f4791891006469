// Multigrid: V-cycles for Poisson's equation in a periodic cube of n^3 points (n a power of two). The cube is divided into blocks in all
// three dimensions; the number of PEs used is a power of two. Neighbors put faces with a signal, one dimension after the other, so that
// edges and corners are included. On grids with fewer points than PEs in a dimension only every second PE is active, with neighbors that
// are twice as far away. The inactive PEs get the values they need during the correction. Each PE then solves the whole problem serially
// and compares its block. oshrun -n 4 mg [points in each dimension] [cycles]
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 12, SWEEPS = 2, SWEEPS_BELOW = 4 };

// Buffers for faces that a neighbor puts here. There are two because the neighbor may be one exchange ahead.
struct inbox {
    double* faces[2];
    uint64_t* came;
    uint64_t exchanges;
};

struct level {
    int n;                          // points of the grid in each dimension
    int points[3];                  // points of this PE's block, without the border of one point around it
    int stride[3];                  // distance to the next active PE in the grid of PEs
    int is_active;                  // whether this PE has a block of this grid; otherwise it only stores its neighbors' values
    double *u, *f, *r;              // solution, right side, residual
    struct inbox inboxes[2][3][2];  // buffers by use (sweep, correction), dimension, and side (from below, from above)
};

static struct level levels[MOST_LEVELS];
static int level_count;
static int grid[3] = {1, 1, 1}, here[3];  // PEs in each dimension; position of this PE

static size_t size_of(const struct level* l) {
    return (size_t)(l->points[0] + 2) * (size_t)(l->points[1] + 2) * (size_t)(l->points[2] + 2);
}

static size_t at(const struct level* l, int x, int y, int z) {
    return ((size_t)z * (size_t)(l->points[1] + 2) + (size_t)y) * (size_t)(l->points[0] + 2) + (size_t)x;
}

static int neighbour(int dimension, int distance) {
    int place[3] = {here[0], here[1], here[2]};
    place[dimension] = (place[dimension] + distance + grid[dimension]) % grid[dimension];
    return (place[2] * grid[1] + place[1]) * grid[0] + place[0];
}

// Copies the face at `index` of the dimension to or from `face`, including the border of the other two dimensions.
static size_t copy_face(const struct level* l, double* field, int dimension, int index, double* face, int out) {
    const int a = dimension == 0 ? 1 : 0, b = dimension == 2 ? 1 : 2;
    size_t count = 0;
    for (int j = 0; j < l->points[b] + 2; j++)
        for (int i = 0; i < l->points[a] + 2; i++) {
            int place[3];
            place[dimension] = index, place[a] = i, place[b] = j;
            double* value = &field[at(l, place[0], place[1], place[2])];
            if (out)
                face[count++] = *value;
            else
                *value = face[count++];
        }
    return count;
}

static void put_face(const struct level* l, struct inbox* inbox, double* field, int dimension, int index, int pe) {
    static double* face;
    if (!face) face = malloc(sizeof *face * size_of(&levels[0]));
    const size_t count = copy_face(l, field, dimension, index, face, 1);
    const uint64_t number = inbox->exchanges + 1;
    shmem_double_put_signal(inbox->faces[number % 2], face, count, inbox->came, number, SHMEM_SIGNAL_SET, pe);
}

static void take_face(const struct level* l, struct inbox* inbox, double* field, int dimension, int index) {
    const uint64_t number = ++inbox->exchanges;
    shmem_signal_wait_until(inbox->came, SHMEM_CMP_GE, number);
    copy_face(l, field, dimension, index, inbox->faces[number % 2], 0);
}

// Fills the border with the adjacent points of the neighbors' blocks.
static void exchange(struct level* l, double* field) {
    for (int d = 0; d < 3; d++) {
        put_face(l, &l->inboxes[0][d][1], field, d, 1, neighbour(d, -l->stride[d]));
        put_face(l, &l->inboxes[0][d][0], field, d, l->points[d], neighbour(d, l->stride[d]));
        take_face(l, &l->inboxes[0][d][0], field, d, 0);
        take_face(l, &l->inboxes[0][d][1], field, d, l->points[d] + 1);
    }
}

// Sends a correction from this grid to all PEs that have a block of the finer grid. A PE without a block of this grid receives the adjacent
// lower block (one point), which then serves as its own. All PEs also receive the adjacent upper points. A PE that is inactive in a later
// dimension has no values to send yet.
static void hand_up(struct level* l, const struct level* finer) {
    for (int d = 0; d < 3; d++) {
        const int left_out = here[d] % l->stride[d] != 0;
        int is_filled = 1;
        for (int later = d + 1; later < 3; later++) is_filled &= here[later] % l->stride[later] == 0;
        const int step = finer->stride[d], thinner = l->stride[d] != step;
        if (!is_filled) continue;
        if (!left_out) {
            put_face(l, &l->inboxes[1][d][1], l->u, d, 1, neighbour(d, -step));
            if (thinner) put_face(l, &l->inboxes[1][d][0], l->u, d, 1, neighbour(d, step));
        }
        if (left_out) take_face(l, &l->inboxes[1][d][0], l->u, d, 1);
        if (left_out || !thinner) take_face(l, &l->inboxes[1][d][1], l->u, d, l->points[d] + 1);
        // Sender and receiver must count the same exchanges, also those in which nothing was sent.
        if (!left_out && thinner) l->inboxes[1][d][0].exchanges++, l->inboxes[1][d][1].exchanges++;
    }
}

// --- computations at a point of a block or of the whole grid; `s` holds the offsets from the point to its neighbors ---

static double residual_at(const double* u, double f, const ptrdiff_t s[6]) {
    return f - (6 * u[0] - u[s[0]] - u[s[1]] - u[s[2]] - u[s[3]] - u[s[4]] - u[s[5]]);
}

static const double kDamping = 0.8 / 6;

static void relax(struct level* l, int sweeps) {
    const ptrdiff_t y = l->points[0] + 2, z = y * (l->points[1] + 2), s[6] = {-1, 1, -y, y, -z, z};
    for (int sweep = 0; sweep < sweeps; sweep++) {
        exchange(l, l->u);
        for (int k = 1; k <= l->points[2]; k++)
            for (int j = 1; j <= l->points[1]; j++)
                for (int i = 1; i <= l->points[0]; i++) {
                    const size_t p = at(l, i, j, k);
                    l->r[p] = l->u[p] + kDamping * residual_at(&l->u[p], l->f[p], s);
                }
        double* u = l->u;
        l->u = l->r, l->r = u;
    }
}

static void find_residual(struct level* l) {
    const ptrdiff_t y = l->points[0] + 2, z = y * (l->points[1] + 2), s[6] = {-1, 1, -y, y, -z, z};
    exchange(l, l->u);
    for (int k = 1; k <= l->points[2]; k++)
        for (int j = 1; j <= l->points[1]; j++)
            for (int i = 1; i <= l->points[0]; i++) {
                const size_t p = at(l, i, j, k);
                l->r[p] = residual_at(&l->u[p], l->f[p], s);
            }
    exchange(l, l->r);
}

// Returns the mean of the fine points around a coarse point, with weights 1/4, 1/2, 1/4 in each dimension. The mean is multiplied by 4,
// because the distance between points has doubled.
static double restricted_at(const double* r, ptrdiff_t y, ptrdiff_t z) {
    double sum = 0;
    for (int k = -1; k <= 1; k++)
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++) sum += r[i + j * y + k * z] / (double)(2 << (abs(i) + abs(j) + abs(k)));
    return sum;
}

// Returns the mean of the coarse points around a fine point; `odd` says in which dimensions the fine point lies between two of them.
static double corrected_at(const double* coarse, ptrdiff_t y, ptrdiff_t z, const int odd[3]) {
    double sum = 0;
    for (int k = 0; k <= odd[2]; k++)
        for (int j = 0; j <= odd[1]; j++)
            for (int i = 0; i <= odd[0]; i++) sum += coarse[i + j * y + k * z];
    return sum / (double)(1 << (odd[0] + odd[1] + odd[2]));
}

static void restrict_to(struct level* coarse, const struct level* l) {
    memset(coarse->u, 0, sizeof(double) * size_of(coarse));
    if (!coarse->is_active) return;
    const ptrdiff_t y = l->points[0] + 2, z = y * (l->points[1] + 2);
    // Step between coarse points in the fine block. It is 1 where a PE has only one point, because the active PEs' points then are the
    // coarse grid.
    int by[3];
    for (int d = 0; d < 3; d++) by[d] = l->points[d] > 1 ? 2 : 1;
    for (int k = 0; k < coarse->points[2]; k++)
        for (int j = 0; j < coarse->points[1]; j++)
            for (int i = 0; i < coarse->points[0]; i++)
                coarse->f[at(coarse, i + 1, j + 1, k + 1)] =
                    restricted_at(&l->r[at(l, by[0] * i + 1, by[1] * j + 1, by[2] * k + 1)], y, z);
}

static void correct(struct level* l, const struct level* coarse) {
    const ptrdiff_t y = coarse->points[0] + 2, z = y * (coarse->points[1] + 2);
    int first[3];  // per dimension: whether the block's first point has an odd index; it is then the only point
    for (int d = 0; d < 3; d++) first[d] = l->points[d] == 1 && here[d] / l->stride[d] % 2;
    for (int k = 0; k < l->points[2]; k++)
        for (int j = 0; j < l->points[1]; j++)
            for (int i = 0; i < l->points[0]; i++) {
                const int odd[3] = {(i + first[0]) % 2, (j + first[1]) % 2, (k + first[2]) % 2};
                l->u[at(l, i + 1, j + 1, k + 1)] +=
                    corrected_at(&coarse->u[at(coarse, i / 2 + 1, j / 2 + 1, k / 2 + 1)], y, z, odd);
            }
}

static void cycle(int depth) {
    struct level* l = &levels[depth];
    if (!l->is_active) return;
    if (depth == level_count - 1) return relax(l, SWEEPS_BELOW);
    relax(l, SWEEPS);
    find_residual(l);
    restrict_to(l + 1, l);
    cycle(depth + 1);
    hand_up(l + 1, l);
    correct(l, l + 1);
    relax(l, SWEEPS);
}

// --- the serial solution: whole grids with periodic neighbors ---

struct whole {
    int n;
    double *u, *f, *r;
};

static size_t wrapped(int n, int x, int y, int z) {
    return ((size_t)((z + n) % n) * (size_t)n + (size_t)((y + n) % n)) * (size_t)n + (size_t)((x + n) % n);
}

#define EACH_POINT(n)                 \
    for (int z = 0; z < (n); z++)     \
        for (int y = 0; y < (n); y++) \
            for (int x = 0; x < (n); x++)

static double whole_residual(const struct whole* w, int x, int y, int z) {
    const int n = w->n;
    const double* u = w->u;
    return w->f[wrapped(n, x, y, z)] -
           (6 * u[wrapped(n, x, y, z)] - u[wrapped(n, x - 1, y, z)] - u[wrapped(n, x + 1, y, z)] - u[wrapped(n, x, y - 1, z)] -
            u[wrapped(n, x, y + 1, z)] - u[wrapped(n, x, y, z - 1)] - u[wrapped(n, x, y, z + 1)]);
}

static void whole_relax(struct whole* w, int sweeps) {
    for (int sweep = 0; sweep < sweeps; sweep++) {
        EACH_POINT(w->n) w->r[wrapped(w->n, x, y, z)] = w->u[wrapped(w->n, x, y, z)] + kDamping * whole_residual(w, x, y, z);
        double* u = w->u;
        w->u = w->r, w->r = u;
    }
}

static double weight(int i, int j, int k) { return 1.0 / (double)(2 << (abs(i) + abs(j) + abs(k))); }

static void whole_cycle(struct whole* w, int depth) {
    const int n = w->n, half = n / 2;
    if (depth == level_count - 1) return whole_relax(w, SWEEPS_BELOW);
    whole_relax(w, SWEEPS);
    EACH_POINT(n) w->r[wrapped(n, x, y, z)] = whole_residual(w, x, y, z);
    struct whole* coarse = w + 1;
    EACH_POINT(half) {
        double sum = 0;
        for (int k = -1; k <= 1; k++)
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++) sum += w->r[wrapped(n, 2 * x + i, 2 * y + j, 2 * z + k)] * weight(i, j, k);
        coarse->f[wrapped(half, x, y, z)] = sum;
        coarse->u[wrapped(half, x, y, z)] = 0;
    }
    whole_cycle(coarse, depth + 1);
    EACH_POINT(n) {
        double sum = 0;
        int corners = 0;
        for (int k = z / 2; k <= (z + 1) / 2; k++)
            for (int j = y / 2; j <= (y + 1) / 2; j++)
                for (int i = x / 2; i <= (x + 1) / 2; i++) sum += coarse->u[wrapped(half, i, j, k)], corners++;
        w->u[wrapped(n, x, y, z)] += sum / corners;
    }
    whole_relax(w, SWEEPS);
}

// Returns the right side of the equation at a point: ten points are sources, ten are sinks.
static double right_side(int n, size_t point) {
    const size_t all = (size_t)n * (size_t)n * (size_t)n;
    for (size_t k = 0; k < 20; k++)
        if (k * 2654435761u % all == point) return k % 2 ? 1 : -1;
    return 0;
}

static double* solve_alone(int n, int cycles, double* rest) {
    static struct whole wholes[MOST_LEVELS];
    for (int d = 0; d < level_count; d++) {
        const size_t bytes = sizeof(double) * (size_t)(n >> d) * (size_t)(n >> d) * (size_t)(n >> d);
        wholes[d] = (struct whole){n >> d, calloc(1, bytes), calloc(1, bytes), calloc(1, bytes)};
    }
    EACH_POINT(n) wholes->f[wrapped(n, x, y, z)] = right_side(n, wrapped(n, x, y, z));
    for (int i = 0; i < cycles; i++) whole_cycle(wholes, 0);
    *rest = 0;
    EACH_POINT(n)* rest += whole_residual(wholes, x, y, z) * whole_residual(wholes, x, y, z);
    return wholes->u;
}

// --- setup ---

static void choose_grid(int pes, int n) {
    for (int d = 0; grid[0] * grid[1] * grid[2] * 2 <= pes; d = (d + 1) % 3) {
        if (grid[0] == n && grid[1] == n && grid[2] == n) return;
        if (grid[d] < n) grid[d] *= 2;
    }
}

// Allocates all buffers of a level by one call, because each allocation is a barrier.
static void make_inboxes(struct level* l) {
    size_t faces[3], all = 0;
    for (int d = 0; d < 3; d++) faces[d] = size_of(l) / (size_t)(l->points[d] + 2), all += 4 * (2 * faces[d] + 1);
    double* room = shmem_calloc(all, sizeof *room);
    for (int i = 0; i < 12; i++) {
        const int d = i / 2 % 3;
        struct inbox* inbox = &l->inboxes[i / 6][d][i % 2];
        for (int k = 0; k < 2; k++, room += faces[d]) inbox->faces[k] = room;
        inbox->came = (uint64_t*)room++;
    }
}

static void make_levels(int n, int is_used) {
    for (level_count = 0; level_count < MOST_LEVELS && n >> level_count >= 2; level_count++) {
        struct level* l = &levels[level_count];
        l->n = n >> level_count;
        l->is_active = is_used;
        for (int d = 0; d < 3; d++) {
            l->points[d] = l->n > grid[d] ? l->n / grid[d] : 1;
            l->stride[d] = l->n < grid[d] ? grid[d] / l->n : 1;
            l->is_active &= here[d] % l->stride[d] == 0;
        }
        double** fields[3] = {&l->u, &l->f, &l->r};
        for (int i = 0; i < 3; i++) *fields[i] = calloc(size_of(l), sizeof(double));
        make_inboxes(l);
    }
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const int n = argc > 1 ? atoi(argv[1]) : 32, cycles = argc > 2 ? atoi(argv[2]) : 4;
    if (n < 4 || (n & (n - 1)) != 0) shmem_global_exit(2);
    choose_grid(pes, n);
    const int used = grid[0] * grid[1] * grid[2];
    here[0] = me % grid[0], here[1] = me / grid[0] % grid[1], here[2] = me / grid[0] / grid[1];
    make_levels(n, me < used);
    int* wrong = shmem_calloc(2, sizeof *wrong);

    struct level* finest = &levels[0];
    int first[3];
    for (int d = 0; d < 3; d++) first[d] = here[d] * finest->points[d];
    double rest, *reference = solve_alone(n, cycles, &rest);
    if (me < used) {
#define EACH_OF_BLOCK                               \
    for (int z = 0; z < finest->points[2]; z++)     \
        for (int y = 0; y < finest->points[1]; y++) \
            for (int x = 0; x < finest->points[0]; x++)
        EACH_OF_BLOCK finest->f[at(finest, x + 1, y + 1, z + 1)] =
            right_side(n, wrapped(n, first[0] + x, first[1] + y, first[2] + z));
        for (int i = 0; i < cycles; i++) cycle(0);
        EACH_OF_BLOCK wrong[0] += !(fabs(finest->u[at(finest, x + 1, y + 1, z + 1)] -
                                         reference[wrapped(n, first[0] + x, first[1] + y, first[2] + z)]) < 1e-12);
    }
    wrong[0] += !(rest < 20 * pow(0.3, 2 * cycles));  // sum of squares of the residual; it is 20 initially
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong[1], &wrong[0], 1);
    const int all_wrong = wrong[1];
    if (me == 0)
        printf("%d^3, %d cycles on %d x %d x %d of %d PEs: %.3e remains, %s\n", n, cycles, grid[0], grid[1], grid[2], pes,
               sqrt(rest), all_wrong ? "WRONG" : "as in the serial run");
    shmem_finalize();
    return all_wrong != 0;
}
