// Shared by the tests of files: names of files that no other test uses.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include "check.h"

/// Fills `name` with the name of a file that does not exist, the same on all processes: in the folder TEST_FOLDER, or the current one. Collective.
__attribute__((unused)) static void new_file_name(char name[256]) {
    static int number;
    int rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) {
        const char* folder = getenv("TEST_FOLDER");
        snprintf(name, 256, "%s/starling-tests-file-%d-%d", folder ? folder : ".", (int)getpid(), number++);
        unlink(name);
    }
    OK(MPI_Bcast(name, 256, MPI_CHAR, 0, MPI_COMM_WORLD));
}

/// Opens a new file on MPI_COMM_WORLD that is deleted when it is closed.
__attribute__((unused)) static MPI_File new_file(int amode, MPI_Info info) {
    char name[256];
    MPI_File file;
    new_file_name(name);
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    return file;
}

/// Makes the writes of all processes visible to all of them, as MPI 5.0 section 14.6.1 requires for accesses by different processes. On a
/// network file system a barrier alone does not. Collective.
__attribute__((unused)) static void settle(MPI_File file) {
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
}

/// Expects that a status counts `count` elements of `type`.
__attribute__((unused)) static void expect_count(const MPI_Status* status, MPI_Datatype type, int count) {
    int found = -1;
    OK(MPI_Get_count(status, type, &found));
    EXPECT_INT(found, count);
}
