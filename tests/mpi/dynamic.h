// Helpers of test programs that spawn themselves as children.
#pragma once

#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "check.h"

/// Returns the absolute path of the running program. Without /proc that is the path by which it was started.
__attribute__((unused)) static const char* own_path(void) {
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0) n = snprintf(path, sizeof path, "%s", (const char*)getauxval(AT_EXECFN));
    CHECK(n > 0 && path[0] == '/', "the program's own path: '%s'", path);
    path[n] = 0;
    return path;
}

/// In a child that only meets its parents: synchronizes with them, disconnects, finalizes and returns true. Returns false in a process
/// without parents.
__attribute__((unused)) static int was_met_as_child(void) {
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) return 0;
    OK(MPI_Barrier(parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return 1;
}

/// Spawns `count` children of this program with one argument and checks all error codes.
__attribute__((unused)) static MPI_Comm spawn_self(const char* argument, int count, MPI_Comm comm) {
    char word[PATH_MAX];
    char* arguments[] = {word, NULL};
    snprintf(word, sizeof word, "%s", argument);
    int* codes = (int*)malloc((size_t)count * sizeof *codes);
    for (int i = 0; i < count; i++) codes[i] = -1;
    MPI_Comm inter;
    OK(MPI_Comm_spawn(own_path(), arguments, count, MPI_INFO_NULL, 0, comm, &inter, codes));
    for (int i = 0; i < count; i++) EXPECT_INT(codes[i], MPI_SUCCESS);
    free(codes);
    return inter;
}

/// Polls until a receive from `source`, which sends no message, fails because its job has ended.
__attribute__((unused)) static void await_end(int source, MPI_Comm comm) {
    for (int i = 0; i < 40000; i++) {
        MPI_Request request;
        int done = 0;
        OK(MPI_Irecv(NULL, 0, MPI_BYTE, source, 9, comm, &request));
        usleep(5000);
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        CHECK(!done, "a message of a process that has sent none");
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK(0, "the end of the job was not noticed");
}
