/* Messages to a group of hosts, for bench/network/multicast. Plain MPI; rank 0 prints one line of JSON.
 *
 *   multicast-job bcast BYTES COUNT     makes COUNT broadcasts from rank 0, after 20 to warm up, without other traffic in between;
 *                                       prints the mean time of one in microseconds
 *   multicast-job spawn CHILDREN        prints three times in milliseconds, counted from the call of MPI_Comm_spawn: to its return, to
 *                                       the end of the first broadcast of 1 KB over parents and children, and to the first broadcast
 *                                       that this process sent to a multicast group (0: it sent none, or the library does not count
 *                                       them) */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void broadcasts(int bytes, long count) {
    char* data = calloc(1, (size_t)bytes + 1);
    double start = 0;
    for (long i = -20; i < count; ++i) {
        if (i == 0) MPI_Barrier(MPI_COMM_WORLD), start = MPI_Wtime();
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"operation\": \"bcast\", \"bytes\": %d, \"us\": %.2f}\n", bytes, 1e6 * (MPI_Wtime() - start) / (double)count);
    free(data);
}

/* Returns the number of messages that this process has sent to multicast groups; 0 if the library does not count them. */
static unsigned long long sent_to_groups(void) {
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    static MPI_T_pvar_handle handle;
    int index, count = 0;
    unsigned long long value = 0;
    if (MPI_T_pvar_get_index("group_messages", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) return 0;
    if (session == MPI_T_PVAR_SESSION_NULL) {
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        MPI_T_pvar_start(session, handle);
    }
    MPI_T_pvar_read(session, handle, &value);
    return value;
}

static void use(MPI_Comm inter, int parents, double start) {
    MPI_Comm all;
    char data[1024] = {0};
    double returned = MPI_Wtime(), first = 0, grouped = 0;
    MPI_Intercomm_merge(inter, !parents, &all);
    for (int i = 0; i < 2000; ++i) {
        const unsigned long long before = sent_to_groups();
        MPI_Bcast(data, sizeof data, MPI_BYTE, 0, all);
        if (i == 0) MPI_Barrier(all), first = MPI_Wtime();
        if (grouped == 0 && sent_to_groups() > before) grouped = MPI_Wtime();
        int go_on = grouped == 0;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, all);
        if (!go_on) break;
    }
    if (parents && rank == 0)
        printf("{\"operation\": \"spawn\", \"returned_ms\": %.2f, \"first_ms\": %.2f, \"grouped_ms\": %.2f}\n",
               1e3 * (returned - start), 1e3 * (first - start), grouped > 0 ? 1e3 * (grouped - start) : 0);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter;
    int level;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        use(parent, 0, 0);
    } else if (argc > 3 && strcmp(argv[1], "bcast") == 0) {
        broadcasts(atoi(argv[2]), atol(argv[3]));
    } else if (argc > 2 && strcmp(argv[1], "spawn") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, atoi(argv[2]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        use(inter, 1, start);
    } else if (rank == 0) {
        fprintf(stderr, "multicast-job bcast BYTES COUNT | spawn CHILDREN\n");
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
