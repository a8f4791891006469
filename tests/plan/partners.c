/* Ranks r and r + N/2 exchange messages, N of them; with "shifted" r and r + 1. `partners ROUNDS [BYTES [shifted]]`: checks each message,
 * and prints the time of the rounds and the host of each rank: "0.123 lab1 lab2 ...". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 200, bytes = argc > 2 ? atoi(argv[2]) : 1024;
    const int shifted = argc > 3 && strcmp(argv[3], "shifted") == 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int rank, size, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int partner = shifted ? rank ^ 1 : (rank + size / 2) % size;
    char *out = malloc((size_t)bytes + 1), *in = malloc((size_t)bytes + 1);
    char* names = malloc((size_t)size * sizeof name);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int round = 0; round < rounds && partner < size; ++round) {
        memset(out, rank + round, (size_t)bytes);
        MPI_Sendrecv(out, bytes, MPI_BYTE, partner, 1, in, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; ++i)
            if (in[i] != (char)(partner + round)) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - began;
    MPI_Get_processor_name(name, &length);
    MPI_Gather(name, (int)sizeof name, MPI_CHAR, names, (int)sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.4f", seconds);
        for (int i = 0; i < size; ++i) printf(" %s", names + (size_t)i * sizeof name);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
