/* Sends a message into a firewall: rank 0 sends to rank 1, which only waits. Neither rank ends the job, so each must detect by itself that
 * it cannot reach the other. Both print the error text and exit with 0.
 *
 * one_way [fatal [RANK]] errors are fatal, on RANK only if it is given */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    int rank, value = 7, length;
    char text[MPI_MAX_ERROR_STRING] = "nothing is wrong";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2 || (argc > 2 && atoi(argv[2]) != rank)) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = rank == 0 ? MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD)
                          : MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
    printf("rank %d: %s\n", rank, text);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
