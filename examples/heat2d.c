/* Heat in a square plate whose upper edge is hot: Jacobi steps on a grid that is divided into blocks of rows and columns. Uses a Cartesian
 * communicator, derived datatypes for columns, a persistent halo exchange, and an occasional reduction.
 *
 *     mpiexec -n 4 ./heat2d 512 1000
 *     mpiexec -n 4 ./heat2d 512 1000 plate.ckpt
 *
 * With a third argument, all ranks write one file every 100 steps and at the end, and a later run continues from that file. It contains the
 * whole plate row by row, so a later run may have any number of ranks. Compiled with -DWITH_HDF5, the program writes HDF5 files instead. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int rows, columns; /* size of this block; the arrays have one more cell on each side */
    int first_row, first_column;
    double *now, *next;
} Block;

static double* at(const Block* b, double* cells, int row, int column) {
    return cells + (size_t)row * (size_t)(b->columns + 2) + column;
}

static Block make_block(int side, const int dims[2], const int coords[2]) {
    Block b;
    b.first_column = (int)((long)side * coords[1] / dims[1]);
    b.first_row = (int)((long)side * coords[0] / dims[0]);
    b.rows = (int)((long)side * (coords[0] + 1) / dims[0]) - b.first_row;
    b.columns = (int)((long)side * (coords[1] + 1) / dims[1]) - b.first_column;
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

/* Gives a complete checkpoint its name: a job that is killed before leaves the previous checkpoint. */
static void rename_checkpoint(const char* fresh, const char* name) {
    if (rename(fresh, name) == 0) return;
    perror("heat2d: cannot rename the checkpoint");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void refuse_checkpoint(const char* name, int side) {
    fprintf(stderr, "heat2d: %s is not a checkpoint of %dx%d cells\n", name, side, side);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#ifdef WITH_HDF5
#include "heat2d-hdf5.h"
#else

/* The first bytes of a checkpoint file; the cells follow. */
typedef struct {
    int64_t side, steps;
} Head;

/* Errors of files are returned, unlike those of messages, which end the job. */
static void check(int code, const char* doing, const char* file) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "heat2d: cannot %s %s: %s\n", doing, file, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Shows this rank its own block of the file, and returns the type of the block in memory, without the halo. */
static MPI_Datatype select_block(MPI_File file, const char* name, int side, const Block* b) {
    int plate[2] = {side, side}, block[2] = {b->rows, b->columns}, place[2] = {b->first_row, b->first_column};
    int with_halo[2] = {b->rows + 2, b->columns + 2}, inside[2] = {1, 1};
    MPI_Datatype in_file, in_memory;
    MPI_Type_create_subarray(2, plate, block, place, MPI_ORDER_C, MPI_DOUBLE, &in_file);
    MPI_Type_create_subarray(2, with_halo, block, inside, MPI_ORDER_C, MPI_DOUBLE, &in_memory);
    MPI_Type_commit(&in_file);
    MPI_Type_commit(&in_memory);
    check(MPI_File_set_view(file, sizeof(Head), MPI_DOUBLE, in_file, "native", MPI_INFO_NULL), "set the view of", name);
    MPI_Type_free(&in_file);
    return in_memory;
}

/* Writes the plate to a new file, and renames it when it is complete. */
static void write_checkpoint(const char* name, MPI_Comm grid, int side, int steps, const Block* b) {
    char fresh[4096];
    int rank;
    Head head = {side, steps};
    MPI_File file;
    MPI_Comm_rank(grid, &rank);
    snprintf(fresh, sizeof fresh, "%s.new", name);
    check(MPI_File_open(grid, fresh, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "open", fresh);
    check(MPI_File_set_size(file, (MPI_Offset)(sizeof head + sizeof(double) * (size_t)side * (size_t)side)), "resize", fresh);
    if (rank == 0) check(MPI_File_write_at(file, 0, &head, sizeof head, MPI_BYTE, MPI_STATUS_IGNORE), "write", fresh);
    MPI_Datatype block = select_block(file, fresh, side, b);
    check(MPI_File_write_at_all(file, 0, b->now, 1, block, MPI_STATUS_IGNORE), "write", fresh);
    check(MPI_File_sync(file), "store", fresh);
    check(MPI_File_close(&file), "close", fresh);
    MPI_Type_free(&block);
    if (rank == 0) rename_checkpoint(fresh, name);
}

/* Reads the plate and returns the number of steps that led to it; 0 if there is no such file yet. */
static int read_checkpoint(const char* name, MPI_Comm grid, int side, Block* b) {
    MPI_File file;
    MPI_Status status;
    Head head = {0, 0};
    int class, bytes, code = MPI_File_open(grid, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_Error_class(code, &class);
    if (class == MPI_ERR_NO_SUCH_FILE) return 0;
    check(code, "open", name);
    check(MPI_File_read_at_all(file, 0, &head, sizeof head, MPI_BYTE, &status), "read", name);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != (int)sizeof head || head.side != side) refuse_checkpoint(name, side);
    MPI_Datatype block = select_block(file, name, side, b);
    check(MPI_File_read_at_all(file, 0, b->now, 1, block, MPI_STATUS_IGNORE), "read", name);
    check(MPI_File_close(&file), "close", name);
    MPI_Type_free(&block);
    return (int)head.steps;
}
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];
    int side = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 500;
    const char* checkpoint = argc > 3 ? argv[3] : NULL;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, coords);

    Block b = make_block(side, dims, coords);
    int first = checkpoint ? read_checkpoint(checkpoint, grid, side, &b) : 0;
    if (rank == 0 && first > 0) printf("continues after step %d of %s\n", first, checkpoint);
    MPI_Request halo[2][8];
    prepare_halo(&b, b.now, grid, halo[0]);
    prepare_halo(&b, b.next, grid, halo[1]);

    double before = MPI_Wtime(), change = 0, total = 0;
    for (int i = first; i < steps; ++i) {
        MPI_Request* exchange = halo[(i - first) % 2];
        MPI_Startall(8, exchange);
        MPI_Waitall(8, exchange, MPI_STATUSES_IGNORE);
        change = step(&b);
        double* swap = b.now;
        b.now = b.next;
        b.next = swap;
        if (i % 100 == 99 || i == steps - 1) {
            MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, grid);
            if (checkpoint) write_checkpoint(checkpoint, grid, side, i + 1, &b);
        }
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
