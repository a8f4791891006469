// Children die during collectives. Each collective, blocking or not, started before or after the death, must return MPI_ERR_PROC_ABORTED on
// every parent. This holds on new and used inter-communicators and on communicators merged from them. It also holds on a parent that learns
// of the death only through another parent on another host.
#include <signal.h>

#include "dynamic.h"

enum { kOutstanding = 3, kCount = 20000 };

static void child(const char* how) {
    MPI_Comm parent, merged;
    int used = 0, in = 0, out = 0;
    sscanf(how, "used %d", &used);
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Intercomm_merge(parent, 1, &merged));
    for (int i = 0; i < used; i++) {
        OK(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, parent));
        OK(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, merged));
    }
    OK(MPI_Recv(&in, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE));
    raise(SIGKILL);
}

/// Checks the error class of a collective on a communicator that ran `used` collectives before the death.
static void expect_aborted(int code, int used, const char* what) {
    int class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_PROC_ABORTED, "%s with a dead child, after %d, gave class %d", what, used, class);
}

static void outstanding(MPI_Comm comm, MPI_Comm inter, int used, int rank) {
    static int in[kOutstanding][kCount], out[kCount];
    MPI_Request requests[kOutstanding];
    int go = 1;
    for (int i = 0; i < kOutstanding; i++)
        OK(MPI_Iallreduce(out, in[i], i == 0 ? 1 : kCount, MPI_INT, MPI_SUM, comm, &requests[i]));
    if (rank == 0 && inter != MPI_COMM_NULL) OK(MPI_Send(&go, 1, MPI_INT, 0, 2, inter));
    for (int i = kOutstanding - 1; i >= 0; i--)
        expect_aborted(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), used, "MPI_Iallreduce");
}

static void parents(int used, int rank) {
    char how[32];
    int in = 0, out = 0;
    MPI_Comm merged;
    snprintf(how, sizeof how, "used %d", used);
    MPI_Comm inter = spawn_self(how, 1, MPI_COMM_WORLD);
    OK(MPI_Intercomm_merge(inter, 0, &merged));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN));
    for (int i = 0; i < used; i++) {
        OK(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, inter));
        OK(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, merged));
    }
    // The child dies when rank 0 says so: by then the collectives above must have ended on the other parents too.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    outstanding(merged, inter, used, rank);
    outstanding(inter, MPI_COMM_NULL, used, rank);
    expect_aborted(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, merged), used, "MPI_Allreduce");
    expect_aborted(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, inter), used, "MPI_Allreduce");
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&inter));
}

int main(int argc, char** argv) {
    int rank;
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) child(argv[1]);
    for (int used = 0; used < 4; used++) parents(used, rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
