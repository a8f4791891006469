/* A program with a store of blocks, valid C and C++: each rank fetches the block of the next one. */
#include <mpi.h>
#include <starling_keep.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, sum = 0, value;
    long long version = STARLING_KEEP_LATEST;
    size_t bytes = sizeof value;
    starling_keep store;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    value = 1 << rank;
    if (starling_keep_create(MPI_COMM_WORLD, 1000, &store) || starling_keep_save(store, "value", &value, sizeof value, 1) ||
        starling_keep_fetch(store, "value", (rank + 1) % size, &value, &bytes, &version) || starling_keep_free(&store))
        printf("%s\n", starling_keep_message());
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the blocks' sum is %d\n", sum);
    MPI_Finalize();
    return 0;
}
