/* Runs phases a, b, c in turn: in the first the partners are one rank away, in the second two, and so on. Prints for each rank how many of
 * its sent packets used connections. `cycle CYCLES MESSAGES [spawn|BYTES]`: messages have 4 bytes, or BYTES; with spawn a child job runs
 * the phases, without further arguments. */
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mpi/counted.h"

static char* out;
static char* in;

static void exchange(int to, int from, int bytes, int number) {
    memset(out, number + 7 * from, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, number, in, bytes, MPI_BYTE, from, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int is_right(int senders_from, int bytes, int number) {
    for (int i = 0; i < bytes; ++i)
        if (in[i] != (char)(number + 7 * senders_from)) return 0;
    return 1;
}

int main(int argc, char** argv) {
    int rank, size, provided;
    MPI_Comm parent;
    const int cycles = argc > 1 ? atoi(argv[1]) : 4, messages = argc > 2 ? atoi(argv[2]) : 20;
    const int spawns = argc > 3 && strcmp(argv[3], "spawn") == 0, bytes = argc > 3 && !spawns ? atoi(argv[3]) : 4;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    const Counted on_rings = count_from_now("messages_ring"), on_tcp = count_from_now("messages_tcp");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (spawns && parent == MPI_COMM_NULL) {
        char* arguments[] = {argv[1], argv[2], NULL};
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], arguments, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
        MPI_Finalize();
        return 0;
    }
    out = malloc((size_t)bytes);
    in = malloc((size_t)bytes);
    for (int i = 0; i < 3 * cycles; ++i) {
        const int away = i % 3 + 1, to = (rank + away) % size, from = (rank + size - away) % size;
        const char name[2] = {(char)('a' + i % 3), '\0'};
        MPIX_Phase_begin(MPI_COMM_WORLD, name);
        for (int message = 0; message < messages; ++message) {
            exchange(to, from, bytes, message + i);
            if (!is_right((from + size - away) % size, bytes, message + i)) MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
    printf("%llu\n", counted_so_far(on_rings) + counted_so_far(on_tcp));
    free(out);
    free(in);
    if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
