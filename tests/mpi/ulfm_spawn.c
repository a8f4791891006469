// A job spawns another one and merges with it; then a child dies. Both jobs revoke, agree on and shrink the inter-communicator and the merged
// communicator, and use the results.
#include <mpi-ext.h>

#include "death.h"
#include "dynamic.h"

enum { kChildren = 3 };

/// Calls collectives until one fails, as it must when a child dies, and revokes the communicator.
static void use_until_failure(MPI_Comm comm) {
    int code = MPI_SUCCESS;
    while (!code) {
        int value = 1, sum;
        code = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    }
    const int class = class_of(code);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "a collective call gave class %d", class);
    OK(MPIX_Comm_revoke(comm));
}

static int flag_of(MPI_Comm comm) {
    int flag = 6;
    EXPECT_INT(class_of(MPIX_Comm_agree(comm, &flag)), MPIX_ERR_PROC_FAILED);
    return flag;
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter, merged, living;
    int size, rank, n, value = 1, sum = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    const int is_child = parent != MPI_COMM_NULL;
    if (is_child)
        inter = parent;
    else
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Intercomm_merge(inter, is_child, &merged));
    OK(MPI_Comm_size(merged, &n));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN));
    const int first_child = n - kChildren, doomed = first_child + 1;
    kill_when_all_are_ready(merged, doomed);
    use_until_failure(merged);
    EXPECT_INT(flag_of(merged), 6);
    OK(MPIX_Comm_shrink(merged, &living));
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, living));
    EXPECT_INT(sum, n - 1);
    OK(MPI_Comm_free(&living));
    use_until_failure(inter);
    EXPECT_INT(flag_of(inter), 6);
    MPI_Request request;
    OK(MPIX_Comm_ishrink(inter, &living, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_remote_size(living, &n));
    EXPECT_INT(n, is_child ? sum - (kChildren - 1) : kChildren - 1);
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, living));
    EXPECT_INT(sum, n);
    OK(MPI_Comm_free(&living));
    OK(MPI_Comm_free(&merged));
    if (!is_child && rank == 0) puts("both jobs went on");
    OK(MPI_Finalize());
    return 0;
}
