/* Half the round trip of 8 bytes between two jobs of one process each that were started separately.
 *     latency-connect accept     prints a port and waits for a connection
 *     latency-connect PORT       connects and prints the median of twenty parts of 10 ms, us */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kParts = 20, kRounds = 100 };

static int ascending(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

/* Measures for the time of one part. The process that measures decides when it ends: the first byte of a message says whether another round
 * follows. */
static double part(MPI_Comm comm) {
    char data[8] = {1};
    long rounds = 0;
    const double start = MPI_Wtime();
    double end = start;
    for (; end - start < 0.01; end = MPI_Wtime(), rounds += kRounds) {
        for (int i = 0; i < kRounds; ++i) {
            MPI_Send(data, sizeof data, MPI_BYTE, 0, 0, comm);
            MPI_Recv(data, sizeof data, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        }
    }
    return (end - start) / (double)rounds / 2 * 1e6;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm comm;
    if (argc == 2 && strcmp(argv[1], "accept") == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        puts(port);
        fflush(stdout);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
        char data[8] = {1};
        while (MPI_Recv(data, sizeof data, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE), data[0])
            MPI_Send(data, sizeof data, MPI_BYTE, 0, 0, comm);
        MPI_Close_port(port);
    } else {
        snprintf(port, sizeof port, "%s", argc == 2 ? argv[1] : "");
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
        double times[kParts];
        for (int i = 0; i < kParts; ++i) times[i] = part(comm);
        qsort(times, kParts, sizeof *times, ascending);
        printf("%.4f\n", (times[kParts / 2 - 1] + times[kParts / 2]) / 2);
        const char stop[8] = {0};
        MPI_Send(stop, sizeof stop, MPI_BYTE, 0, 0, comm);
    }
    MPI_Comm_disconnect(&comm);
    MPI_Finalize();
    return 0;
}
