// Prints how many sockets to other hosts a process has after MPI, OpenSHMEM, or both have sent enough to the next process to open a
// connection. The first argument is mpi, shmem or both.
#include <mpi.h>
#include <sys/socket.h>

#include "check.h"
#include "counters.h"

static int sockets(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int domain = 0, listens = 0;  // listeners are not counted: they exist only on one side
        socklen_t length = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || (domain != AF_INET && domain != AF_INET6)) continue;
        count += getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && !listens;
    }
    return count;
}

/// Returns whether every process has its connections: the process that requests one has it later than its peer.
static int all_connected(int mpi) {
    static int mine, all;
    mine = counter(kOpened) > 0;
    if (mpi)
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    else
        shmem_int_min_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    return all;
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "both";
    const int mpi = strcmp(what, "shmem") != 0, shmem = strcmp(what, "mpi") != 0;
    int me = 0, n = 1;
    CHECK(start_counters(), "a counter is missing");
    if (mpi) MPI_Init(NULL, NULL);
    if (shmem) {
        shmem_init();
        me = shmem_my_pe(), n = shmem_n_pes();
    } else {
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        MPI_Comm_size(MPI_COMM_WORLD, &n);
    }
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    char data[100];
    memset(data, me, sizeof data);
    for (int i = 0; i < 2000; i++) {
        if (mpi) MPI_Sendrecv_replace(data, 100, MPI_CHAR, next, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!shmem) continue;
        static char memory[100];
        shmem_putmem(memory, data, sizeof data, next);
        if (i % 20 == 0) shmem_barrier_all();
    }
    while (!all_connected(mpi)) {}
    if (shmem) shmem_barrier_all();
    if (mpi) MPI_Barrier(MPI_COMM_WORLD);
    printf("sockets %d\n", sockets());
    fflush(stdout);
    if (shmem) shmem_finalize();
    if (mpi) MPI_Finalize();
    return 0;
}
