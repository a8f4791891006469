/* Time until waiting processes get an error after a process of their host has died.
 *
 *   mpiexec --enable-recovery -n N death recv|wait|allreduce|lock MILLISECONDS
 *
 * The last process kills itself after MILLISECONDS, while all others wait. They wait for a message from it (in a call or with a request),
 * in a reduction, or for a lock that it holds. Each prints how many milliseconds after the death it got its error. bench/deaths runs the
 * program many times. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_for(double ms) {
    const struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    nanosleep(&t, NULL);
}

static int wait_for(const char* what, int doomed, MPI_Win win) {
    int value = 0, sum;
    if (strcmp(what, "recv") == 0) return MPI_Recv(&value, 1, MPI_INT, doomed, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(what, "allreduce") == 0) return MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(what, "lock") == 0) return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, doomed, 0, win);
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, doomed, 1, MPI_COMM_WORLD, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    int rank, size, unit;
    double *memory, *died;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size < 2) return fprintf(stderr, "usage: death recv|wait|allreduce|lock MILLISECONDS\n"), 2;
    const int doomed = size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate_shared(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_shared_query(win, doomed, &bytes, &unit, &died);
    *(volatile double*)memory = *(volatile double*)died;  // touch both pages, so that page faults do not count
    if (rank == doomed) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, doomed, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == doomed) {
        sleep_for(atof(argv[2]));
        *died = now();
        raise(SIGKILL);
    }
    int error = wait_for(argv[1], doomed, win);
    // The lock may have been granted to a process that requested it after others had detected the death, so request it again.
    while (error == MPI_SUCCESS && strcmp(argv[1], "lock") == 0) {
        MPI_Win_unlock(doomed, win);
        error = wait_for(argv[1], doomed, win);
    }
    const double late = now() - *died;
    sleep_for(20);  // this process's failure handling must not use the others' cores
    if (error == MPI_SUCCESS) return fprintf(stderr, "rank %d: no error\n", rank), 1;
    printf("%.3f\n", late);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
