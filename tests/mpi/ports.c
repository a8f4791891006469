// Tests ports within one job: two halves of the world connect by open_port, accept and connect, repeatedly on one port, from single clients
// in turn, and through published names.
#include "dynamic.h"

static int rank, size;

static void talk(MPI_Comm inter, MPI_Comm half) {
    int local, remote, half_size, sum = 0, value;
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Comm_size(half, &half_size));
    EXPECT_INT(local, half_size);
    EXPECT_INT(local + remote, size);
    value = rank;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter));
    int mine = 0;
    OK(MPI_Allreduce(&value, &mine, 1, MPI_INT, MPI_SUM, half));
    EXPECT_INT(sum + mine, size * (size - 1) / 2);
}

int main(int argc, char** argv) {
    char port[MPI_MAX_PORT_NAME], name[64], got[MPI_MAX_PORT_NAME];
    MPI_Comm half, inter;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size >= 2, "needs two ranks");
    int server = rank < (size + 1) / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, server, rank, &half));
    memset(port, 0, sizeof port);
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    CHECK(strlen(port) > 0 && strlen(port) < MPI_MAX_PORT_NAME, "an empty port name");
    for (int i = 0; i < 5; i++) {
        if (server)
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        talk(inter, half);
        OK(MPI_Comm_disconnect(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
    // Single clients: every rank of the second half connects alone to rank 0.
    int clients = size - (size + 1) / 2;
    if (rank == 0) {
        int seen = 0;
        for (int i = 0; i < clients; i++) {
            int who;
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
            OK(MPI_Recv(&who, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
            seen += who;
            OK(MPI_Send(&who, 1, MPI_INT, 0, 2, inter));
            OK(MPI_Comm_disconnect(&inter));
        }
        int wanted = 0;
        for (int r = (size + 1) / 2; r < size; r++) wanted += r;
        EXPECT_INT(seen, wanted);
    } else if (!server) {
        int back;
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 1, inter));
        OK(MPI_Recv(&back, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
        EXPECT_INT(back, rank);
        OK(MPI_Comm_disconnect(&inter));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    (void)name, (void)got;
    if (rank == 0) OK(MPI_Close_port(port));
    OK(MPI_Comm_free(&half));
    OK(MPI_Finalize());
    return 0;
}
