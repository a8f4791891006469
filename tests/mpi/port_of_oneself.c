// One process is on both sides of a connection: both calls must fail, and neither may hang. Tested with a process's own port, with
// overlapping groups, and with a socket whose two ends belong to one process.
#include <pthread.h>
#include <sys/socket.h>

#include "dynamic.h"

static char port[MPI_MAX_PORT_NAME];
static int sockets[2];

static void* accept_alone(void* unused) {
    MPI_Comm made = MPI_COMM_WORLD;
    EXPECT_ERROR(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_COMM);
    CHECK(made == MPI_COMM_NULL, "there is a communicator");
    return unused;
}

static void* connect_alone(void* unused) {
    MPI_Comm made = MPI_COMM_WORLD;
    EXPECT_ERROR(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_COMM);
    CHECK(made == MPI_COMM_NULL, "there is a communicator");
    return unused;
}

static void* join_other_end(void* unused) {
    MPI_Comm made;
    EXPECT_ERROR(MPI_Comm_join(sockets[1], &made), MPI_ERR_COMM);
    return unused;
}

int main(int argc, char** argv) {
    int rank, size, level;
    MPI_Comm made;
    pthread_t thread;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

    OK(MPI_Open_port(MPI_INFO_NULL, port));
    for (int round = 0; round < 20; round++) {
        CHECK(!pthread_create(&thread, NULL, round % 2 ? accept_alone : connect_alone, NULL), "pthread_create");
        (round % 2 ? connect_alone : accept_alone)(NULL);
        pthread_join(thread, NULL);
    }
    OK(MPI_Close_port(port));
    EXPECT_ERROR(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
    EXPECT_ERROR(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);

    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
    CHECK(!pthread_create(&thread, NULL, join_other_end, NULL), "pthread_create");
    EXPECT_ERROR(MPI_Comm_join(sockets[0], &made), MPI_ERR_COMM);
    pthread_join(thread, NULL);

    // All ranks accept on one port and the last rank also connects to it: every call must fail.
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int round = 0; size > 1 && round < 5; round++) {
        if (rank == size - 1) CHECK(!pthread_create(&thread, NULL, connect_alone, NULL), "pthread_create");
        EXPECT_ERROR(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made), MPI_ERR_COMM);
        if (rank == size - 1) pthread_join(thread, NULL);
    }
    EXPECT_ERROR(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, rank, 3, &made), MPI_ERR_COMM);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_Close_port(port));
    OK(MPI_Finalize());
    return 0;
}
