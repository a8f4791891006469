/* Heat in a square plate, as in heat2d.c, computed by ranks that may die: the result is the same as without deaths. Every ten steps each rank
 * keeps its rows in a store of blocks (starling_keep.h). After a death the survivors continue from there, either with substitutes of the
 * dead (MPIX_Comm_replace) or with fewer ranks (MPIX_Comm_shrink).
 *
 *     mpicc -O2 heat2d-survives.c -lstarling_keep -o heat2d-survives
 *     mpiexec --enable-recovery -n 4 ./heat2d-survives 512 1000 replace
 *     mpiexec --enable-recovery -n 4 ./heat2d-survives 512 1000 shrink 2 350 1 720
 *
 * The last numbers are pairs: rank 2 kills itself in step 350, and rank 1 in step 720. A rank is the one in MPI_COMM_WORLD here. */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <starling_keep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kEvery = 10 }; /* steps between two saves */

static char** arguments;
static int side, steps, replaces;

/* The ranks that compute, and the store of their rows. */
typedef struct {
    MPI_Comm comm;
    starling_keep store;
    int rank, size;
} Team;

/* The rows of one rank, with one more on each side and one more column on each side. */
typedef struct {
    int first, rows;
    double *now, *next;
} Rows;

static double* row(double* cells, int number) { return cells + (size_t)number * (size_t)(side + 2); }
static size_t bytes_of(int rows) { return (size_t)rows * (size_t)(side + 2) * sizeof(double); }
static int first_row(int rank, int size) { return (int)((long)side * rank / size); }

static void fail(const char* doing, const char* why) {
    fprintf(stderr, "heat2d-survives: cannot %s: %s\n", doing, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static Rows make_rows(const Team* team) {
    Rows b = {.first = first_row(team->rank, team->size)};
    b.rows = first_row(team->rank + 1, team->size) - b.first;
    b.now = calloc(1, bytes_of(b.rows + 2));
    b.next = calloc(1, bytes_of(b.rows + 2));
    for (int c = 0; b.first == 0 && c < side + 2; ++c) b.now[c] = b.next[c] = 100.0;
    return b;
}

static void free_rows(Rows* b) {
    free(b->now);
    free(b->next);
}

/* Gets the neighbors' rows and computes one step; returns an error if a rank has died. */
static int step(const Team* team, Rows* b) {
    const int up = team->rank > 0 ? team->rank - 1 : MPI_PROC_NULL;
    const int down = team->rank + 1 < team->size ? team->rank + 1 : MPI_PROC_NULL, n = side + 2;
    int error = MPI_Sendrecv(row(b->now, 1), n, MPI_DOUBLE, up, 0, row(b->now, b->rows + 1), n, MPI_DOUBLE, down, 0, team->comm,
                             MPI_STATUS_IGNORE);
    if (!error)
        error = MPI_Sendrecv(row(b->now, b->rows), n, MPI_DOUBLE, down, 1, row(b->now, 0), n, MPI_DOUBLE, up, 1, team->comm,
                             MPI_STATUS_IGNORE);
    if (error) return error;
    for (int r = 1; r <= b->rows; ++r) {
        const double *above = row(b->now, r - 1), *here = row(b->now, r), *below = row(b->now, r + 1);
        double* next = row(b->next, r);
        for (int c = 1; c <= side; ++c) next[c] = 0.25 * (above[c] + below[c] + here[c - 1] + here[c + 1]);
    }
    double* swap = b->now;
    b->now = b->next;
    b->next = swap;
    return MPI_SUCCESS;
}

/* Copies the part of another rank's kept rows that this rank computes now. */
static void take(Rows* b, const double* kept, int first, int rows) {
    const int from = first > b->first ? first : b->first;
    const int end = first + rows < b->first + b->rows ? first + rows : b->first + b->rows;
    if (from < end)
        memcpy(row(b->now, from - b->first + 1), kept + (size_t)(from - first) * (size_t)(side + 2), bytes_of(end - from));
}

/* Fetches the rows of the latest save, which any number of ranks may have made. Sets the number of steps that led to them. */
static int restore(const Team* team, Rows* b, int* done) {
    long long version;
    int owners;
    *done = 0;
    starling_keep_latest(team->store, "rows", &version, &owners);
    if (version == STARLING_KEEP_NONE) return MPI_SUCCESS;
    for (int owner = 0; owner < owners; ++owner) {
        const int first = first_row(owner, owners), rows = first_row(owner + 1, owners) - first;
        const int wanted = first < b->first + b->rows && first + rows > b->first;
        size_t bytes = bytes_of(rows);
        double* kept = malloc(bytes);
        const int error = starling_keep_fetch(team->store, "rows", wanted ? owner : MPI_PROC_NULL, kept, &bytes, &version);
        if (!error && wanted) take(b, kept, first, rows);
        free(kept);
        if (error == STARLING_KEEP_LOST) fail("continue", starling_keep_message());
        if (error) return error;
    }
    *done = (int)version;
    return MPI_SUCCESS;
}

static void kill_myself_in(int step, int rank) {
    for (char** pair = arguments + 4; pair[0] && pair[1]; pair += 2)
        if (atoi(pair[0]) == rank && atoi(pair[1]) == step) raise(SIGKILL);
}

/* Computes from the latest save to the end, and the sum of all cells. Returns an error, perhaps only on some ranks, if a rank dies. */
static int compute(const Team* team, int world_rank, double* total) {
    Rows b = make_rows(team);
    int done = 0, error = restore(team, &b, &done);
    double own = 0;
    if (!error && done > 0 && team->rank == 0) printf("%d ranks continue after step %d\n", team->size, done);
    while (!error && done < steps) {
        kill_myself_in(done, world_rank);
        error = step(team, &b);
        if (!error && ++done % kEvery == 0)
            error = starling_keep_save(team->store, "rows", row(b.now, 1), bytes_of(b.rows), done);
    }
    for (int r = 1; r <= b.rows; ++r)
        for (int c = 1; c <= side; ++c) own += row(b.now, r)[c];
    free_rows(&b);
    return error ? error : MPI_Allreduce(&own, total, 1, MPI_DOUBLE, MPI_SUM, team->comm);
}

/* Continues with another communicator. */
static void use(Team* team, MPI_Comm comm) {
    if (team->comm != MPI_COMM_NULL) MPI_Comm_free(&team->comm);
    team->comm = comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &team->rank);
    MPI_Comm_size(comm, &team->size);
}

/* Makes a communicator without the dead, of the old size or smaller. */
static MPI_Comm without_dead(MPI_Comm comm) {
    MPI_Comm living;
    int error, class;
    do {
        error = replaces ? MPIX_Comm_replace(comm, arguments[0], arguments + 1, MPI_INFO_NULL, &living)
                         : MPIX_Comm_shrink(comm, &living);
        MPI_Error_class(error, &class);
        if (error && class != MPIX_ERR_PROC_FAILED) fail("continue", "the dead cannot be replaced");
    } while (error);
    return living;
}

/* Gives every rank of the team the store: those that have none yet are substitutes. */
static int share_store(Team* team) {
    const int error = team->store ? starling_keep_move(team->store, team->comm)
                                  : starling_keep_create(team->comm, STARLING_KEEP_UNBOUNDED, &team->store);
    if (error == MPI_ERR_NO_MEM) fail("keep the rows", starling_keep_message());
    return error;
}

int main(int argc, char** argv) {
    MPI_Comm parent, comm;
    Team team = {MPI_COMM_NULL, NULL, 0, 0};
    int world_rank = -1; /* a substitute lives to the end */
    MPI_Init(&argc, &argv);
    if (argc < 4) fail("start", "usage: heat2d-survives SIDE STEPS replace|shrink [RANK STEP]...");
    arguments = argv;
    side = atoi(argv[1]);
    steps = atoi(argv[2]);
    replaces = strcmp(argv[3], "replace") == 0;
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
        if (MPIX_Comm_replace(MPI_COMM_NULL, NULL, MPI_ARGV_NULL, MPI_INFO_NULL, &comm)) {
            MPI_Finalize(); /* the survivors start another substitute */
            return 0;
        }
    }
    use(&team, comm);
    for (;;) {
        double total = 0;
        int good = !share_store(&team) && !compute(&team, world_rank, &total);
        if (!good) MPIX_Comm_revoke(team.comm); /* nobody waits for a rank that gives up */
        /* All end together, so that no rank leaves while others need it. */
        if (MPIX_Comm_agree(team.comm, &good) == MPI_SUCCESS && good) {
            if (team.rank == 0) printf("%dx%d cells: %d steps, mean %.6f\n", side, side, steps, total / side / side);
            break;
        }
        use(&team, without_dead(team.comm));
    }
    starling_keep_free(&team.store);
    MPI_Comm_free(&team.comm);
    MPI_Finalize();
    return 0;
}
