/* Passes a number around the ranks: the program of the wrappers' test projects, compiled as C and as C++. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &value, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (value != (rank + size - 1) % size) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0) printf("ring of %d\n", size);
    MPI_Finalize();
    return 0;
}
