/* Times of ULFM's functions on one host, in a job that continues after failures.
 *
 *   mpiexec --enable-recovery -n N recovery agree [CALLS]     an agreement and an allreduce of one int, without failures
 *   mpiexec --enable-recovery -n N recovery shrink            a shrink after all survivors have noticed a death
 *   mpiexec --enable-recovery -n N recovery revoke            from the revocation to the error of all other processes, which wait
 *   mpiexec --enable-recovery -n N recovery again             from a death during reductions to the first reduction of the survivors
 *
 * Prints µs, those of the slowest process: two values for `agree`, one for the others. bench/faults runs the program many times, with Open
 * MPI too. The processes of a host share the clock, so their times can be compared. */
#include <mpi.h>
/* Open MPI's mpi-ext.h needs mpi.h before it. */
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void sleep_until(double when) {
    while (now() < when) {
        const double left = when - now();
        const struct timespec t = {(time_t)(left / 1e6), (long)(left * 1e3) % 1000000000};
        nanosleep(&t, NULL);
    }
}

/* How long a process sleeps after the event that it has timed, µs: what an early process does next, and its exit, must not delay the others,
 * which share its core. */
static const double kQuiet = 100e3;

/* Returns the communicator of the survivors. */
static MPI_Comm shrunk(MPI_Comm comm) {
    MPI_Comm out = MPI_COMM_NULL;
    if (MPIX_Comm_shrink(comm, &out) != MPI_SUCCESS) fprintf(stderr, "a shrink fails\n"), MPI_Abort(MPI_COMM_WORLD, 1);
    return out;
}

/* Prints the largest value of all processes of `comm`, on its rank 0. */
static void print_largest(double value, MPI_Comm comm, const char* end) {
    double largest = 0;
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Reduce(&value, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    if (rank == 0) printf("%.3f%s", largest, end), fflush(stdout);
}

static void time_agreements(int calls) {
    double took[2] = {0, 0};
    for (int what = 0; what < 2; ++what)
        for (int call = -calls / 10; call < calls; ++call) {
            int flag = 1, sum = 0;
            const double began = now();
            if (what == 0)
                MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
            else
                MPI_Allreduce(&flag, &sum, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD);
            if (call >= 0) took[what] += now() - began;
        }
    print_largest(took[0] / calls, MPI_COMM_WORLD, " ");
    print_largest(took[1] / calls, MPI_COMM_WORLD, "\n");
}

/* The last process dies 5 ms after the others have begun to wait for it. Returns the time of its death on the others. */
static double last_one_dies(volatile double* died, int rank, int size) {
    int value = 0;
    if (rank == size - 1) {
        sleep_until(now() + 5000);
        *died = now();
        raise(SIGKILL);
    }
    if (MPI_Recv(&value, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS) abort();
    return *died;
}

static void time_shrink(volatile double* died, int rank, int size) {
    const double start = last_one_dies(died, rank, size) + 100e3;
    sleep_until(start);
    const MPI_Comm survivors = shrunk(MPI_COMM_WORLD);
    const double took = now() - start;
    sleep_until(start + kQuiet);
    print_largest(took, survivors, "\n");
}

static void time_revocation(volatile double* began, int rank) {
    MPI_Comm comm;
    int value;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    if (rank == 0) {
        sleep_until(now() + 20e3);
        *began = now();
        MPIX_Comm_revoke(comm);
        sleep_until(*began + kQuiet);
        print_largest(0, MPI_COMM_WORLD, "\n");
    } else {
        if (MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS) abort();
        const double late = now() - *began;
        sleep_until(*began + kQuiet);
        print_largest(late, MPI_COMM_WORLD, "\n");
    }
    MPI_Comm_free(&comm);
}

static void time_until_again(volatile double* died, int rank, int size) {
    MPI_Comm comm;
    int one = 1, sum = 0, error;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    const double doom = now() + 5000;
    do {
        if (rank == size - 1 && now() > doom) *died = now(), raise(SIGKILL);
        error = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    } while (error == MPI_SUCCESS);
    MPIX_Comm_revoke(comm);
    const MPI_Comm survivors = shrunk(comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, survivors);
    const double late = now() - *died;
    if (sum != size - 1) fprintf(stderr, "%d survivors\n", sum), MPI_Abort(MPI_COMM_WORLD, 1);
    print_largest(late, survivors, "\n");
}

int main(int argc, char** argv) {
    int rank, size, unit;
    double *memory, *time;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* what = argc > 1 ? argv[1] : "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* The time of the death or the revocation is in memory that all share. */
    MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)sizeof *memory : 0, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                            &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &time);
    *(volatile double*)time = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "agree") == 0)
        time_agreements(argc > 2 ? atoi(argv[2]) : 1000);
    else if (strcmp(what, "shrink") == 0)
        time_shrink(time, rank, size);
    else if (strcmp(what, "revoke") == 0)
        time_revocation(time, rank);
    else if (strcmp(what, "again") == 0)
        time_until_again(time, rank, size);
    else
        return fprintf(stderr, "usage: recovery agree [CALLS]|shrink|revoke|again\n"), 2;
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
