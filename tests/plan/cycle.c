/* Phases a, b, c in turn: in the first the partners are one rank away, in the second two, and so on. Prints of each rank how many of the
 * messages that it has sent went on rings. `cycle CYCLES MESSAGES [spawn]`: the last has a child job run, which is told no more. */
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

#include "../mpi/counted.h"

int main(int argc, char** argv) {
    int rank, size, provided;
    MPI_Comm parent;
    const int cycles = argc > 1 ? atoi(argv[1]) : 4, messages = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    const Counted on_rings = count_from_now("messages_ring");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc > 3 && parent == MPI_COMM_NULL) {
        char* arguments[] = {argv[1], argv[2], NULL};
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], arguments, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < 3 * cycles; ++i) {
        const int away = i % 3 + 1;
        const char name[2] = {(char)('a' + i % 3), '\0'};
        MPIX_Phase_begin(MPI_COMM_WORLD, name);
        for (int message = 0; message < messages; ++message) {
            int out = message + i, in = -1;
            MPI_Sendrecv(&out, 1, MPI_INT, (rank + away) % size, i, &in, 1, MPI_INT, (rank + size - away) % size, i,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (in != out) MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
    printf("%llu\n", counted_so_far(on_rings));
    if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
