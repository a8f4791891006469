// A job in a known state. Rank 0 sends 100 small messages and a large one to each other rank. Then rank 0 computes while the others wait
// for it, until its standard input closes.
#include <mpi-ext.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMessages = 100, kLarge = 1 << 20 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPIX_Phase_begin(MPI_COMM_WORLD, "uneven work");
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char* large = calloc(1, kLarge);
    int word = 0;
    for (int peer = 1; peer < size; peer++) {
        for (int i = 0; i < kMessages; i++) {
            if (rank == 0) MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
            if (rank == peer) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 0) MPI_Send(large, kLarge, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        if (rank == peer) MPI_Recv(large, kLarge, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
        for (volatile unsigned i = 0;; i++) {
            struct pollfd input = {STDIN_FILENO, POLLIN, 0};
            char byte;
            if (i % 100000 == 0 && poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0) break;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(large);
    MPI_Finalize();
    return 0;
}
