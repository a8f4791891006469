// MPIX_Comm_replace that cannot succeed: all survivors get the same error and no communicator, and a later call succeeds.
#include <mpi-ext.h>
#include <string.h>

#include "death.h"
#include "dynamic.h"

static int rank, size;

/// Calls the function with a substitute that runs with this argument, and returns the class of the error on which all survivors agree.
static int replace_by(const char* command, const char* argument, MPI_Comm comm, MPI_Comm* made) {
    char word[16];
    char* arguments[] = {word, NULL};
    int least, most;
    MPI_Comm living;
    snprintf(word, sizeof word, "%s", argument);
    *made = MPI_COMM_WORLD;
    const int class = class_of(MPIX_Comm_replace(comm, command, arguments, MPI_INFO_NULL, made));
    if (class == MPI_SUCCESS) return class;
    CHECK(*made == MPI_COMM_NULL, "a failed call has made a communicator");
    OK(MPIX_Comm_shrink(comm, &living));
    OK(MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, living));
    OK(MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, living));
    EXPECT_INT(least, most);
    OK(MPI_Comm_free(&living));
    return class;
}

/// A substitute: works, or dies in one of several places.
static void substitute(const char* argument) {
    MPI_Comm comm, parent;
    int n;
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    if (strcmp(argument, "early") == 0) raise(SIGKILL);  // after MPI_Init
    // One of the two ends, and the other one must not wait for it.
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (strcmp(argument, "one") == 0 && rank == 1) raise(SIGKILL);
    const int class = class_of(MPIX_Comm_replace(MPI_COMM_NULL, NULL, NULL, MPI_INFO_NULL, &comm));
    if (class == MPI_SUCCESS) {
        OK(MPI_Comm_size(comm, &n));
        OK(MPI_Barrier(comm));
        EXPECT_INT(class_of(MPIX_Comm_replace(MPI_COMM_NULL, NULL, NULL, MPI_INFO_NULL, &parent)), MPI_ERR_COMM);
        OK(MPI_Comm_free(&comm));
    } else {
        EXPECT_INT(class, MPIX_ERR_PROC_FAILED);
    }
    OK(MPI_Finalize());
    exit(0);
}

int main(int argc, char** argv) {
    MPI_Comm comm, made;
    int n;
    if (argc > 1 && strcmp(argv[1], "absent") == 0) return 3;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    if (argc > 1) substitute(argv[1]);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size > 3, "needs 4 ranks");
    EXPECT_INT(class_of(MPIX_Comm_replace(MPI_COMM_NULL, NULL, NULL, MPI_INFO_NULL, &made)), MPI_ERR_COMM);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    kill_all_when_ready(comm, (const int[]){1, 2}, 2);
    for (int r = 1; r < 3; ++r)
        EXPECT_INT(class_of(MPI_Recv(NULL, 0, MPI_BYTE, r, 8, comm, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(replace_by("/nonexistent/program", "", comm, &made), MPI_ERR_SPAWN);
    EXPECT_INT(replace_by(own_path(), "absent", comm, &made), MPI_ERR_SPAWN);
    // One member has a wrong argument; all get an error.
    const int code =
        MPIX_Comm_replace(comm, own_path(), (char*[]){(char[]){"live"}, NULL}, MPI_INFO_NULL, rank == 3 ? NULL : &made);
    EXPECT_INT(class_of(code), rank == 3 ? MPI_ERR_ARG : MPI_ERR_OTHER);
    for (int early = 0; early < 2; ++early) {
        // A substitute that dies before all survivors have connected to it has not been spawned.
        const int class = replace_by(own_path(), early ? "early" : "one", comm, &made);
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_SPAWN, "the class is %d", class);
    }
    OK(MPIX_Comm_revoke(comm));
    EXPECT_INT(replace_by(own_path(), "live", comm, &made), MPI_SUCCESS);
    OK(MPI_Comm_size(made, &n));
    EXPECT_INT(n, size);
    OK(MPI_Comm_rank(made, &n));
    EXPECT_INT(n, rank);
    OK(MPI_Barrier(made));
    if (rank == 0) puts("every failed call was repeated");
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
