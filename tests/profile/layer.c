/* A tool between a program and MPI, as profilers are: it defines MPI_Allreduce itself. */
#include <mpi.h>

static int calls;

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    ++calls;
    const int error = PMPI_Allreduce(from, to, count, type, op, comm);
    return calls > 0 ? error : MPI_ERR_OTHER;
}
