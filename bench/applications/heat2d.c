/* Heat in a square plate with a hot upper edge, divided into blocks: time per step by the plate's side (-s). The borders are exchanged in
 * three ways.
 *
 * - sendrecv: one MPI_Sendrecv per direction, then all cells.
 * - overlap: MPI_Isend/MPI_Irecv, and meanwhile the cells that need no border.
 * - persistent: persistent requests, started in each step.
 *
 * -c: the plate must be identical to one computed by a single process. --spawn K: parents and children compute one plate together. */
#include <stdlib.h>
#include <string.h>

#include "../common/team.h"

enum { kUp, kDown, kLeft, kRight, kSides };

typedef struct {
    MPI_Comm grid;
    int neighbor[kSides]; /* ranks of the neighbors; MPI_PROC_NULL at the plate's edges */
    int rows, columns, first_row, first_column;
    double *now, *next; /* cells, with a border of one cell */
    MPI_Datatype row, column;
    MPI_Request persistent[2][2 * kSides]; /* persistent requests of the two arrays of cells */
} Block;

static double* at(const Block* b, double* cells, int row, int column) {
    return cells + (size_t)row * (size_t)(b->columns + 2) + column;
}

static int part(int side, int pieces, int piece) { return (int)((long)side * piece / pieces); }

static void turn(Block* b) {
    MPI_Request requests[2 * kSides];
    double* kept = b->now;
    b->now = b->next;
    b->next = kept;
    memcpy(requests, b->persistent[0], sizeof requests);
    memcpy(b->persistent[0], b->persistent[1], sizeof requests);
    memcpy(b->persistent[1], requests, sizeof requests);
}

static void heat_edge(Block* b) {
    size_t cells = (size_t)(b->rows + 2) * (size_t)(b->columns + 2) * sizeof(double);
    memset(b->now, 0, cells);
    memset(b->next, 0, cells);
    if (b->first_row > 0) return;
    for (int c = 0; c < b->columns + 2; ++c) *at(b, b->now, 0, c) = *at(b, b->next, 0, c) = 100.0;
}

/* Return the first of the cells to send at a side, and of the border cells to receive at it. */
static double* inner(const Block* b, int side) {
    return at(b, b->now, side == kDown ? b->rows : 1, side == kRight ? b->columns : 1);
}
static double* outer(const Block* b, int side) {
    int row = side == kUp ? 0 : side == kDown ? b->rows + 1 : 1;
    int column = side == kLeft ? 0 : side == kRight ? b->columns + 1 : 1;
    return at(b, b->now, row, column);
}
static MPI_Datatype type_of(const Block* b, int side) { return side < kLeft ? b->row : b->column; }

static void prepare(Block* b) {
    for (int s = 0; s < kSides; ++s) {
        MPI_Recv_init(outer(b, s), 1, type_of(b, s), b->neighbor[s], s ^ 1, b->grid, &b->persistent[0][s]);
        MPI_Send_init(inner(b, s), 1, type_of(b, s), b->neighbor[s], s, b->grid, &b->persistent[0][kSides + s]);
    }
    turn(b);
}

static Block make_block(MPI_Comm comm, int side) {
    Block b = {0};
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];
    MPI_Comm_size(comm, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(comm, 2, dims, periods, 0, &b.grid);
    MPI_Comm_rank(b.grid, &rank);
    MPI_Cart_coords(b.grid, rank, 2, coords);
    MPI_Cart_shift(b.grid, 0, 1, &b.neighbor[kUp], &b.neighbor[kDown]);
    MPI_Cart_shift(b.grid, 1, 1, &b.neighbor[kLeft], &b.neighbor[kRight]);
    b.first_row = part(side, dims[0], coords[0]);
    b.first_column = part(side, dims[1], coords[1]);
    b.rows = part(side, dims[0], coords[0] + 1) - b.first_row;
    b.columns = part(side, dims[1], coords[1] + 1) - b.first_column;
    bench_require(b.rows > 0 && b.columns > 0, "the plate is too small for this number of processes");
    size_t bytes = (size_t)(b.rows + 2) * (size_t)(b.columns + 2) * sizeof(double);
    b.now = bench_buffer(bytes);
    b.next = bench_buffer(bytes);
    MPI_Type_contiguous(b.columns, MPI_DOUBLE, &b.row);
    MPI_Type_vector(b.rows, 1, b.columns + 2, MPI_DOUBLE, &b.column);
    MPI_Type_commit(&b.row);
    MPI_Type_commit(&b.column);
    heat_edge(&b);
    prepare(&b);
    prepare(&b);
    return b;
}

static void free_block(Block* b) {
    for (int i = 0; i < 4 * kSides; ++i) MPI_Request_free(&b->persistent[i / (2 * kSides)][i % (2 * kSides)]);
    free(b->now);
    free(b->next);
    MPI_Type_free(&b->row);
    MPI_Type_free(&b->column);
    MPI_Comm_free(&b->grid);
}

static void relax(const Block* b, int row, int end_row, int column, int end_column) {
    for (int r = row; r < end_row; ++r) {
        const double *above = at(b, b->now, r - 1, 0), *here = at(b, b->now, r, 0);
        const double* below = at(b, b->now, r + 1, 0);
        double* next = at(b, b->next, r, 0);
        for (int c = column; c < end_column; ++c) { next[c] = 0.25 * ((above[c] + below[c]) + (here[c - 1] + here[c + 1])); }
    }
}

static void step_sendrecv(Block* b) {
    for (int to = 0; to < kSides; ++to) {
        int from = to ^ 1;
        MPI_Sendrecv(inner(b, to), 1, type_of(b, to), b->neighbor[to], to, outer(b, from), 1, type_of(b, from),
                     b->neighbor[from], to, b->grid, MPI_STATUS_IGNORE);
    }
    relax(b, 1, b->rows + 1, 1, b->columns + 1);
}

static void step_overlap(Block* b) {
    MPI_Request requests[2 * kSides];
    for (int s = 0; s < kSides; ++s) { MPI_Irecv(outer(b, s), 1, type_of(b, s), b->neighbor[s], s ^ 1, b->grid, &requests[s]); }
    for (int s = 0; s < kSides; ++s) {
        MPI_Isend(inner(b, s), 1, type_of(b, s), b->neighbor[s], s, b->grid, &requests[kSides + s]);
    }
    relax(b, 2, b->rows, 2, b->columns);
    MPI_Waitall(2 * kSides, requests, MPI_STATUSES_IGNORE);
    relax(b, 1, 2, 1, b->columns + 1);
    if (b->rows > 1) relax(b, b->rows, b->rows + 1, 1, b->columns + 1);
    relax(b, 2, b->rows, 1, 2);
    if (b->columns > 1) relax(b, 2, b->rows, b->columns, b->columns + 1);
}

static void step_persistent(Block* b) {
    MPI_Startall(2 * kSides, b->persistent[0]);
    MPI_Waitall(2 * kSides, b->persistent[0], MPI_STATUSES_IGNORE);
    relax(b, 1, b->rows + 1, 1, b->columns + 1);
}

typedef struct {
    const char* name;
    void (*step)(Block*);
} Way;
static const Way kWays[] = {{"sendrecv", step_sendrecv}, {"overlap", step_overlap}, {"persistent", step_persistent}};

static void advance(Block* b, const Way* way, long steps) {
    for (long i = 0; i < steps; ++i) {
        way->step(b);
        turn(b);
    }
}

/* Compares the cells after some steps with those computed by a single process. */
static void check(Block* b, const Way* way, int side) {
    enum { kSteps = 40 };
    Block whole = make_block(MPI_COMM_SELF, side);
    advance(&whole, way, kSteps);
    heat_edge(b);
    advance(b, way, kSteps);
    for (int r = 1; r <= b->rows; ++r) {
        for (int c = 1; c <= b->columns; ++c) {
            bench_require(*at(b, b->now, r, c) == *at(&whole, whole.now, b->first_row + r, b->first_column + c),
                          "the plate differs from the result of one process");
        }
    }
    free_block(&whole);
}

typedef struct {
    Block* block;
    const Way* way;
} Context;

static void repeat(const Team* t, long iterations, void* context) {
    Context* c = context;
    (void)t;
    advance(c->block, c->way, iterations);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "64,256,1024";
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "heat in a plate; -s sides, -o sendrecv,overlap,persistent", defaults);
    Team team = bench_team(&options, argv);
    Report* report = bench_report("heat2d", "us per step", &options);
    for (long side = bench_next_size(&options, 0); side > 0; side = bench_next_size(&options, side)) {
        Block block = make_block(team.control, (int)side);
        for (size_t k = 0; k < sizeof kWays / sizeof kWays[0]; ++k) {
            if (!bench_wanted(&options, kWays[k].name)) continue;
            if (options.check) check(&block, &kWays[k], (int)side);
            Context context = {&block, &kWays[k]};
            Stats stats = bench_team_measure(&team, &options, repeat, &context, 1e6);
            bench_row(report, kWays[k].name, side, stats);
        }
        free_block(&block);
    }
    bench_team_print(&team, report);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
