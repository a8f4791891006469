// A program started without a launcher is a world of one process. It can spawn repeatedly, and accept a connection from its own children.
#include "dynamic.h"

int main(int argc, char** argv) {
    MPI_Comm parent, inter, merged;
    int rank, size, remote, value = 5, sum;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (parent == MPI_COMM_NULL) {
        EXPECT_INT(rank, 0);
        EXPECT_INT(size, 1);
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        EXPECT_INT(sum, 5);
        for (int i = 0; i < 3; i++) {
            inter = spawn_self("child", 1 + i, MPI_COMM_WORLD);
            OK(MPI_Comm_remote_size(inter, &remote));
            EXPECT_INT(remote, 1 + i);
            OK(MPI_Intercomm_merge(inter, 0, &merged));
            value = 1;
            OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged));
            EXPECT_INT(sum, 2 + i);
            OK(MPI_Comm_free(&merged));
            // A second connection between the same processes: the children connect to a port of the singleton.
            char port[MPI_MAX_PORT_NAME] = "";
            MPI_Comm second;
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, MPI_ROOT, inter));
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &second));
            OK(MPI_Barrier(second));
            OK(MPI_Comm_disconnect(&second));
            OK(MPI_Close_port(port));
            OK(MPI_Comm_disconnect(&inter));
        }
    } else {
        OK(MPI_Intercomm_merge(parent, 1, &merged));
        value = 1;
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged));
        EXPECT_INT(sum, size + 1);
        OK(MPI_Comm_free(&merged));
        char port[MPI_MAX_PORT_NAME] = "";
        OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, parent));
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_disconnect(&inter));
        OK(MPI_Comm_disconnect(&parent));
    }
    OK(MPI_Finalize());
    return 0;
}
