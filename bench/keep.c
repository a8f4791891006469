/* The price of a save in the store of blocks, and the time from a death until all processes can compute again with all blocks.
 *
 *   mpiexec --enable-recovery -n N keep BYTES shrink|replace
 *
 * Each process saves a block of BYTES 200 times; the first line has the median time of a save in microseconds. Then the last process kills
 * itself while the others save. They shrink the communicator, and with `replace` spawn a substitute with the same rank. They move the store,
 * and each process fetches its block; with `shrink` rank 0 fetches that of the dead one. The second line has the milliseconds from the
 * death until the slowest process has its block. All processes are on one host. */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <starling_keep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { saves = 200 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void fail(const char* what) {
    fprintf(stderr, "keep: %s: %s\n", what, starling_keep_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int compare(const void* a, const void* b) {
    return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double median_save(starling_keep store, const void* block, size_t bytes) {
    double times[saves];
    for (int i = 0; i < saves; ++i) {
        const double start = now();
        if (starling_keep_save(store, "block", block, bytes, i)) fail("save");
        times[i] = (now() - start) * 1e3;
    }
    qsort(times, saves, sizeof *times, compare);
    return times[saves / 2];
}

/* Fetches the block of `owner`, and waits until all have theirs. */
static void fetch(starling_keep store, MPI_Comm comm, int owner, void* block, size_t bytes) {
    long long version = STARLING_KEEP_LATEST;
    if (starling_keep_fetch(store, "block", owner, block, &bytes, &version)) fail("fetch");
    MPI_Barrier(comm);
}

/* Merges with a substitute (or in it, with the others) and orders the processes by their old ranks. */
static MPI_Comm join(MPI_Comm inter, int is_substitute, int rank) {
    MPI_Comm merged, all;
    MPI_Intercomm_merge(inter, is_substitute, &merged);
    MPI_Comm_split(merged, 0, rank, &all);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    return all;
}

static void substitute(MPI_Comm parent, size_t bytes) {
    int rank;
    starling_keep store;
    char* block = malloc(bytes + 1);
    MPI_Comm_remote_size(parent, &rank);
    MPI_Comm comm = join(parent, 1, rank);
    if (starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store)) fail("create");
    fetch(store, comm, rank, block, bytes);
    starling_keep_free(&store);
    free(block);
}

/* Replaces the communicator of a job whose last rank has died. */
static MPI_Comm repair(MPI_Comm comm, int rank, char** argv) {
    MPI_Comm living, inter;
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &living);
    MPI_Comm_free(&comm);
    if (strcmp(argv[2], "replace") != 0) return living;
    MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, living, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_free(&living);
    return join(inter, 0, rank);
}

int main(int argc, char** argv) {
    int rank, size, unit;
    double *memory, *died;
    MPI_Aint length;
    MPI_Win win;
    MPI_Comm comm, parent;
    starling_keep store;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc != 3) return fprintf(stderr, "usage: keep BYTES shrink|replace\n"), 2;
    const size_t bytes = strtoull(argv[1], NULL, 10);
    if (parent != MPI_COMM_NULL) return substitute(parent, bytes), MPI_Finalize();
    const int doomed = size - 1;
    char* block = calloc(1, bytes + 1);
    MPI_Win_allocate_shared(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_shared_query(win, doomed, &length, &unit, &died);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store)) fail("create");
    const double price = median_save(store, block, bytes);
    if (rank == 0) printf("save of %zu bytes: %.1f us\n", bytes, price);
    fflush(stdout);
    MPI_Barrier(comm);
    if (rank == doomed) {
        *died = now();
        raise(SIGKILL);
    }
    for (int i = saves; !starling_keep_save(store, "block", block, bytes, i); ++i) continue;
    comm = repair(comm, rank, argv);
    if (starling_keep_move(store, comm)) fail("move");
    fetch(store, comm, rank == 0 && strcmp(argv[2], "shrink") == 0 ? doomed : rank, block, bytes);
    if (rank == 0) printf("continues after %.2f ms\n", now() - *died);
    starling_keep_free(&store);
    free(block);
    MPI_Finalize();
    return 0;
}
