/* A program whose profile is known: pattern MODE. Every process sends to its right neighbour only, as profile_test.py counts.
 *   ring     phases "ring" (3 times: 4 messages of 100 bytes, 2 of 4000, 1 of 100000, 2 allreduces at one place) and "far" (twice: one
 *            of 8 bytes to the process across)
 *   short N  phase "step" N times, one message of 8 bytes each
 *   spawn    2 children, who get 3 messages of 16 bytes each and answer each with one
 *   killed   as ring; then rank 1 kills itself in phase "last", at once
 *   abort    as ring; then rank 0 aborts in phase "last"
 *   wait F   as ring; then waits in phase "last" until there is a file F */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static char out[100000], in[100000];

static void pass(int bytes, int distance) {
    MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + distance) % size, 1, in, bytes, MPI_BYTE, (rank + size - distance) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sum(int doubles) {
    double numbers[64] = {0}, sums[64];
    MPI_Allreduce(numbers, sums, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void ring(void) {
    for (int i = 0; i < 4; ++i) pass(100, 1);
    pass(4000, 1);
    pass(4000, 1);
    pass(100000, 1);
    sum(1);
    sum(64);
}

static void spawn(char* program) {
    MPI_Comm parent, children;
    char text[16] = "message";
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char* arguments[] = {"spawn", NULL};
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
        for (int child = 0; child < 2; ++child) {
            for (int i = 0; i < 3; ++i) MPI_Send(text, 16, MPI_BYTE, child, 0, children);
            for (int i = 0; i < 3; ++i) MPI_Recv(text, 16, MPI_BYTE, child, 0, children, MPI_STATUS_IGNORE);
        }
        MPI_Comm_disconnect(&children);
    } else {
        for (int i = 0; i < 3; ++i) {
            MPI_Recv(text, 16, MPI_BYTE, 0, 0, parent, MPI_STATUS_IGNORE);
            MPI_Send(text, 16, MPI_BYTE, 0, 0, parent);
        }
        MPI_Comm_disconnect(&parent);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* mode = argc > 1 ? argv[1] : "ring";
    if (strcmp(mode, "spawn") == 0) {
        spawn(argv[0]);
    } else if (strcmp(mode, "short") == 0) {
        for (int i = 0; i < atoi(argv[2]); ++i) {
            MPIX_Phase_begin(MPI_COMM_WORLD, "step");
            pass(8, 1);
        }
    } else {
        for (int i = 0; i < 3; ++i) {
            MPIX_Phase_begin(MPI_COMM_WORLD, "ring");
            ring();
            if (i == 2) break;
            MPIX_Phase_begin(MPI_COMM_WORLD, "far");
            pass(8, size / 2);
        }
        MPIX_Phase_begin(MPI_COMM_WORLD, "last");
        pass(8, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        if (strcmp(mode, "killed") == 0 && rank == 1) raise(SIGKILL);
        if (strcmp(mode, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
        if (strcmp(mode, "wait") == 0)
            while (access(argv[2], F_OK) != 0) usleep(10000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
