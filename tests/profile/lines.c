/* A program whose profile names lines: lines [STEPS]. Rank 1 is late in every step. sites_test.py finds the lines by their comments. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, size;

static void take(void) {
    char byte = 0;
    if (rank == 0) MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* receive */
    if (rank == 1) MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void sum(void) {
    double mine = rank, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* reduction */
    if (all != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 9);
}

int main(int argc, char** argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < steps; ++i) {
        if (rank == 1) usleep(20000);
        take();
        sum();
    }
    MPI_Finalize();
    return 0;
}
