/* A program with a known profile: pattern MODE. Every process sends to its right neighbor only; profile_test.py has the numbers.
 *   ring     phases "ring" (3 times: 4 messages of 100 bytes, 2 of 4000, 1 of 100000, 2 allreduces at one place) and "far" (twice: one
 *            of 8 bytes to the opposite process)
 *   short N  phase "step" N times, one message of 8 bytes each
 *   sparse N  phase "step" N times, one message of 8 bytes in every other
 *   reduce N N allreduces of 8 bytes at one place; checks the sums
 *   explored N  N times an allreduce of up to 64 KB, a broadcast and an allgather; checks the results
 *   late     phase "late": rank 1 sends to rank 0 after 0.2 s; phase "together": rank 1 enters a barrier after 0.2 s
 *   flush [in] F  3 messages of 8 bytes without a phase or in phase "ring", MPI_Pcontrol(2), waits until file F exists, 2 more messages
 *   files    phase "files": opens files.dat, 3 collective writes of 1000 bytes at one place, a non-blocking read of 500, a split one of
 *            200, closes it
 *   spawn    spawns 2 children, which receive 3 messages of 16 bytes each and reply to each
 *   killed   like ring; then rank 1 kills itself at the beginning of phase "last"
 *   abort    like ring; then rank 0 aborts in phase "last"
 *   wait F   like ring; then waits in phase "last" until file F exists */
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

static void reduce(int times) {
    for (int i = 0; i < times; ++i) {
        const double mine = rank + i;
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (all != size * (size - 1) / 2 + size * i) MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static void explored(int times) {
    static int mine[16384], all[16384], gathered[64];
    for (int i = 0; i < times; ++i) {
        const int count = 1 << i % 15;
        for (int j = 0; j < count; ++j) mine[j] = rank + i + j;
        MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int j = 0; j < count; ++j)
            if (all[j] != size * (size - 1) / 2 + size * (i + j)) MPI_Abort(MPI_COMM_WORLD, 9);
        int word = rank == i % size ? i : -1;
        MPI_Bcast(&word, 1, MPI_INT, i % size, MPI_COMM_WORLD);
        MPI_Allgather(&word, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD);
        for (int j = 0; j < size; ++j)
            if (gathered[j] != i) MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static void late(void) {
    MPIX_Phase_begin(MPI_COMM_WORLD, "late");
    if (rank == 1) usleep(200000);
    if (rank == 1) MPI_Send(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(in, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPIX_Phase_begin(MPI_COMM_WORLD, "together");
    if (rank == 1) usleep(200000);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void flush(int in_phase, const char* file) {
    if (in_phase) MPIX_Phase_begin(MPI_COMM_WORLD, "ring");
    for (int i = 0; i < 3; ++i) pass(8, 1);
    MPI_Pcontrol(2);
    while (access(file, F_OK) != 0) usleep(10000);
    for (int i = 0; i < 2; ++i) pass(8, 1);
}

static void files(void) {
    MPI_File file;
    MPI_Request request;
    MPIX_Phase_begin(MPI_COMM_WORLD, "files");
    MPI_File_open(MPI_COMM_WORLD, "files.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < 3; ++i) MPI_File_write_at_all(file, 3000 * rank + 1000 * i, out, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, 3000 * rank, in, 500, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_read_ordered_begin(file, in, 200, MPI_BYTE);
    MPI_File_read_ordered_end(file, in, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
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
    } else if (strcmp(mode, "reduce") == 0) {
        reduce(atoi(argv[2]));
    } else if (strcmp(mode, "explored") == 0) {
        explored(atoi(argv[2]));
    } else if (strcmp(mode, "files") == 0) {
        files();
    } else if (strcmp(mode, "late") == 0) {
        late();
    } else if (strcmp(mode, "flush") == 0) {
        flush(argc > 3, argv[argc - 1]);
    } else if (strcmp(mode, "short") == 0 || strcmp(mode, "sparse") == 0) {
        for (int i = 0; i < atoi(argv[2]); ++i) {
            MPIX_Phase_begin(MPI_COMM_WORLD, "step");
            if (mode[1] == 'h' || i % 2 == 0) pass(8, 1);
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
