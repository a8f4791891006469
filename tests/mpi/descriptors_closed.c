// A program closes all descriptors that it does not know, as daemons do, and opens files under the same numbers. Freeing a window must not
// close these files. Without a free descriptor no window can be created; with one it can.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { kMost = 64 };

static void make_window_again(int rank) {
    int files[kMost], count = 0;
    long memory[8];
    MPI_Win window;
    struct rlimit limit;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = kMost;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "RLIMIT_NOFILE");
    // UBSan checks through a pipe whether it may read an object's type: it needs descriptors for each type that it sees for the first time.
    int one = 1, sum;
    MPI_Comm copy;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy));
    OK(MPI_Allgather(&one, 1, MPI_INT, &sum, 1, MPI_INT, copy));
    OK(MPI_Bcast(&one, 1, MPI_INT, 0, copy));
    OK(MPI_Barrier(copy));
    OK(MPI_Comm_free(&copy));
    while (count < kMost && (files[count] = open("/dev/null", O_WRONLY)) >= 0) ++count;
    if (MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window) == MPI_SUCCESS)
        OK(MPI_Win_free(&window));
    while (count > 0) close(files[--count]);
    const int error = MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window);
    CHECK(error == MPI_SUCCESS, "rank %d: error %d although there are descriptors again", rank, error);
    OK(MPI_Win_free(&window));
}

int main(int argc, char** argv) {
    int rank, files[16];
    char* memory;
    MPI_Win window;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    make_window_again(rank);
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window));
    for (int descriptor = 3; descriptor < kMost; ++descriptor) close(descriptor);
    for (int i = 0; i < 16; ++i) files[i] = open("/dev/null", O_WRONLY);
    OK(MPI_Win_free(&window));
    for (int i = 0; i < 16; ++i) CHECK(write(files[i], "x", 1) == 1, "file %d of the program's was closed", i);
    OK(MPI_Finalize());
    return 0;
}
