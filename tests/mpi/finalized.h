// Processes that have called MPI_Finalize and do not exit while others go on, for test programs.
#pragma once

#include <fcntl.h>
#include <mpi-ext.h>
#include <unistd.h>

#include "check.h"

/// Calls MPI_Finalize, and returns when the file exists; at once if `file` is null.
static int finalize_and_stay(const char* file) {
    OK(MPI_Finalize());
    while (file && access(file, F_OK) != 0) usleep(10000);
    return 0;
}

/// Lets all calls of finalize_and_stay() return.
static void let_finalized_exit(const char* file) {
    if (!file) return;
    const int made = open(file, O_CREAT | O_WRONLY, 0600);
    CHECK(made >= 0, "%s cannot be created", file);
    close(made);
}

/// Checks how many members of a communicator are known to have failed.
static void expect_failed(MPI_Comm comm, int wanted) {
    MPI_Group failed;
    int size;
    OK(MPIX_Comm_get_failed(comm, &failed));
    OK(MPI_Group_size(failed, &size));
    EXPECT_INT(size, wanted);
    OK(MPI_Group_free(&failed));
}
