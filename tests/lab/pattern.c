/* Sends messages of all sizes, filled with a text that is recognizable on the wire, back and forth between neighbors. If an argument gives
 * a number of children, the parents also send messages to spawned children. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kText[] = "starling pattern";

static void exchange(MPI_Comm comm, int peer, int rounds) {
    enum { kMost = 3000000 };
    static const int sizes[] = {64, 1000, 20000, 300000, kMost};
    char *out = malloc(kMost), *in = malloc(kMost);
    for (int i = 0; i < kMost; ++i) out[i] = kText[i % (int)(sizeof kText - 1)];
    for (int round = 0; round < rounds; ++round) {
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
            memset(in, 0, (size_t)sizes[s]);
            MPI_Sendrecv(out, sizes[s], MPI_BYTE, peer, 0, in, sizes[s], MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
            if (memcmp(in, out, (size_t)sizes[s]) != 0) {
                fprintf(stderr, "pattern: a received message differs from the one that was sent\n");
                MPI_Abort(comm, 3);
            }
        }
    }
    free(in);
    free(out);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parent != MPI_COMM_NULL) {
        int parents;
        MPI_Comm_remote_size(parent, &parents);
        exchange(parent, (rank + 1) % parents, 3);
        MPI_Comm_disconnect(&parent);
    } else {
        exchange(MPI_COMM_WORLD, rank ^ 1, 8);
        if (argc > 1) {
            char* none[] = {NULL};
            MPI_Comm_spawn(argv[0], none, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
            exchange(children, (rank + size - 1) % size, 3);
            MPI_Comm_disconnect(&children);
        }
        if (rank == 0) printf("done\n");
    }
    MPI_Finalize();
    return 0;
}
