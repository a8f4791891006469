// Not a test by itself: ends by a fatal error or MPI_Abort. The fault tests check the message and that the job ends at once.
//   stdin     rank 0 aborts with code 7 while one of its threads waits for standard input
//   truncate  rank 1 waits for a receive that was truncated long before
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void* read_line(void* unused) {
    char line[100];
    return fgets(line, sizeof line, stdin) ? unused : NULL;
}

static void wait_for_input(int rank) {
    pthread_t thread;
    int ends[2];
    if (rank != 0) return;
    CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0);  // no input ever arrives
    CHECK(!pthread_create(&thread, NULL, read_line, NULL));
    usleep(200000);
    printf("what was printed\n");
    MPI_Abort(MPI_COMM_WORLD, 7);
}

static void truncated(int rank) {
    int values[64] = {0};
    if (rank == 0) {
        OK(MPI_Send(values, 64, MPI_INT, 1, 0, MPI_COMM_WORLD));
    } else if (rank == 1) {
        MPI_Request request;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        OK(MPI_Irecv(values, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
        usleep(500000);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char** argv) {
    int level, rank;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(argc == 2, "stdin or truncate");
    if (!strcmp(argv[1], "stdin"))
        wait_for_input(rank);
    else
        truncated(rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
