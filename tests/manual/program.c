/* Each process exchanges enough messages with its neighbours that a plan of connections can be made from its profile. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, received = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 1000; ++i) {
        MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &received, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
