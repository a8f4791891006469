/* Tests MPI's profiling interface: calls of MPI_Send must reach the program's own definition, and calls of PMPI_Send the library. */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    ++calls;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int main(int argc, char** argv) {
    int sent = 42, received = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Irecv(&received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    PMPI_Finalize();
    if (calls != 1 || received != 42) {
        fprintf(stderr, "calls %d, received %d\n", calls, received);
        return 1;
    }
    return 0;
}
