/* Heat in a square plate whose upper edge is hot: Jacobi steps on a grid that is divided into blocks of rows and columns. Uses a Cartesian
 * communicator, derived datatypes for columns, a persistent halo exchange, and an occasional reduction.
 *
 *     mpiexec -n 4 ./heat2d 512 1000 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int rows, columns; /* size of this block; the arrays have one more cell on each side */
    int first_row;
    double *now, *next;
} Block;

static double* at(const Block* b, double* cells, int row, int column) {
    return cells + (size_t)row * (size_t)(b->columns + 2) + column;
}

static Block make_block(int side, const int dims[2], const int coords[2]) {
    Block b;
    int first_column = (int)((long)side * coords[1] / dims[1]);
    b.first_row = (int)((long)side * coords[0] / dims[0]);
    b.rows = (int)((long)side * (coords[0] + 1) / dims[0]) - b.first_row;
    b.columns = (int)((long)side * (coords[1] + 1) / dims[1]) - first_column;
    size_t cells = (size_t)(b.rows + 2) * (size_t)(b.columns + 2);
    b.now = calloc(cells, sizeof(double));
    b.next = calloc(cells, sizeof(double));
    if (b.first_row == 0) {
        for (int c = 0; c < b.columns + 2; ++c) *at(&b, b.now, 0, c) = *at(&b, b.next, 0, c) = 100.0;
    }
    return b;
}

/* Creates eight persistent requests: to and from each neighbor, for one of the two arrays. */
static void prepare_halo(Block* b, double* cells, MPI_Comm grid, MPI_Request requests[8]) {
    int up, down, left, right;
    MPI_Datatype column;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Type_vector(b->rows, 1, b->columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Recv_init(at(b, cells, 0, 1), b->columns, MPI_DOUBLE, up, 0, grid, &requests[0]);
    MPI_Recv_init(at(b, cells, b->rows + 1, 1), b->columns, MPI_DOUBLE, down, 1, grid, &requests[1]);
    MPI_Recv_init(at(b, cells, 1, 0), 1, column, left, 2, grid, &requests[2]);
    MPI_Recv_init(at(b, cells, 1, b->columns + 1), 1, column, right, 3, grid, &requests[3]);
    MPI_Send_init(at(b, cells, 1, 1), b->columns, MPI_DOUBLE, up, 1, grid, &requests[4]);
    MPI_Send_init(at(b, cells, b->rows, 1), b->columns, MPI_DOUBLE, down, 0, grid, &requests[5]);
    MPI_Send_init(at(b, cells, 1, 1), 1, column, left, 3, grid, &requests[6]);
    MPI_Send_init(at(b, cells, 1, b->columns), 1, column, right, 2, grid, &requests[7]);
    MPI_Type_free(&column);
}

/* Computes one Jacobi step from now to next; returns the largest change of a cell. */
static double step(Block* b) {
    double largest = 0;
    for (int r = 1; r <= b->rows; ++r) {
        const double *above = at(b, b->now, r - 1, 0), *here = at(b, b->now, r, 0), *below = at(b, b->now, r + 1, 0);
        double* next = at(b, b->next, r, 0);
        for (int c = 1; c <= b->columns; ++c) {
            next[c] = 0.25 * (above[c] + below[c] + here[c - 1] + here[c + 1]);
            double change = fabs(next[c] - here[c]);
            largest = change > largest ? change : largest;
        }
    }
    return largest;
}

static double sum(const Block* b) {
    double total = 0;
    for (int r = 1; r <= b->rows; ++r) {
        for (int c = 1; c <= b->columns; ++c) total += *at(b, b->now, r, c);
    }
    return total;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];
    int side = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 500;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, coords);

    Block b = make_block(side, dims, coords);
    MPI_Request halo[2][8];
    prepare_halo(&b, b.now, grid, halo[0]);
    prepare_halo(&b, b.next, grid, halo[1]);

    double before = MPI_Wtime(), change = 0, total = 0;
    for (int i = 0; i < steps; ++i) {
        MPI_Startall(8, halo[i % 2]);
        MPI_Waitall(8, halo[i % 2], MPI_STATUSES_IGNORE);
        change = step(&b);
        double* swap = b.now;
        b.now = b.next;
        b.next = swap;
        if (i % 100 == 99 || i == steps - 1) { MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, grid); }
    }
    double own = sum(&b);
    MPI_Reduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, 0, grid);
    if (rank == 0) {
        printf("%dx%d cells on %dx%d ranks: %d steps in %.3f s, largest last change %.6f, mean %.6f\n", side, side, dims[0],
               dims[1], steps, MPI_Wtime() - before, change, total / side / side);
    }
    for (int i = 0; i < 16; ++i) MPI_Request_free(&halo[i / 8][i % 8]);
    free(b.now);
    free(b.next);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
