// Members of a communicator of two jobs call MPI_Finalize and do not exit, and the others go on without them. The arguments: how the
// communicator is made (spawn, merge, or port, over which the second job connects after it has disconnected from its parents), which members
// finalize, as a mask of bits in which the parents' ranks come first, and a file, which ends those that have finalized.
#include <mpi-ext.h>

#include "death.h"
#include "dynamic.h"
#include "finalized.h"

/// Connects the two jobs over a port of the first one, and disconnects their inter-communicator. Returns the new inter-communicator.
static MPI_Comm connected(MPI_Comm inter, int is_child) {
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    MPI_Comm made;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (!is_child && rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, is_child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    OK(MPI_Comm_disconnect(&inter));
    if (is_child)
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made));
    else
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made));
    return made;
}

static MPI_Comm made_by(const char* how, MPI_Comm parent, char** argv) {
    int size;
    MPI_Comm inter = parent, merged;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (parent == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(argv[0], argv + 1, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    if (strcmp(how, "port") == 0) return connected(inter, parent != MPI_COMM_NULL);
    if (strcmp(how, "spawn") == 0) return inter;
    OK(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged));
    return merged;
}

/// Returns how many of the bits `first` to `first + count - 1` are not set.
static int remaining(int mask, int first, int count) {
    int n = 0;
    for (int i = first; i < first + count; ++i) n += !(mask >> i & 1);
    return n;
}

static void expect_sizes(MPI_Comm comm, int local, int remote) {
    int size, is_inter;
    OK(MPI_Comm_test_inter(comm, &is_inter));
    OK(MPI_Comm_size(comm, &size));
    EXPECT_INT(size, is_inter ? local : local + remote);
    if (is_inter) OK(MPI_Comm_remote_size(comm, &size));
    if (is_inter) EXPECT_INT(size, remote);
}

int main(int argc, char** argv) {
    int rank, size, flag = 6, is_revoked = 0;
    MPI_Comm parent, comm, living;
    MPI_Request request;
    CHECK(argc == 4);
    const int leaving = atoi(argv[2]);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    const int is_child = parent != MPI_COMM_NULL;
    comm = made_by(argv[1], parent, argv);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (leaving >> (rank + is_child * size) & 1) return finalize_and_stay(argv[3]);
    const int local = remaining(leaving, is_child * size, size), remote = remaining(leaving, !is_child * size, size);
    EXPECT_INT(class_of(MPIX_Comm_agree(comm, &flag)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(flag, 6);
    expect_failed(comm, 2 * size - local - remote);
    OK(MPIX_Comm_revoke(comm));
    OK(MPIX_Comm_is_revoked(comm, &is_revoked));
    CHECK(is_revoked);
    OK(MPIX_Comm_ishrink(comm, &living, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect_sizes(living, local, remote);
    OK(MPI_Barrier(living));
    OK(MPI_Comm_free(&living));
    let_finalized_exit(argv[3]);
    OK(MPI_Finalize());
    if (!is_child) puts("the two jobs went on");
    return 0;
}
