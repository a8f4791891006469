// Tests published names: publish, look up from another rank, refuse a second publication, unpublish, look up again.
#include "dynamic.h"

int main(int argc, char** argv) {
    int rank;
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "", name[64];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int number = (int)getpid();
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "test service %d", number);
    EXPECT_ERROR(MPI_Lookup_name("surely nobody has published this", MPI_INFO_NULL, found), MPI_ERR_NAME);
    if (rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
    }
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Lookup_name(name, MPI_INFO_NULL, found));
    CHECK(strcmp(port, found) == 0, "published %s, found %s", port, found);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
        EXPECT_ERROR(MPI_Lookup_name(name, MPI_INFO_NULL, found), MPI_ERR_NAME);
        EXPECT_ERROR(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        OK(MPI_Close_port(port));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
