// The first errors of a process touch few pages of memory. A page that is touched for the first time costs about a microsecond, and after a
// death all ranks of a host get their first error at the same time, on the same cores.
#include <sys/resource.h>

#include "check.h"

enum { kMost = 24 };

static long faults(void) {
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
    return used.ru_minflt;
}

int main(int argc, char** argv) {
    int rank, values[4] = {0};
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

    long before = faults();
    EXPECT_INT(class_of(MPI_Send(values, 1, MPI_INT, 4711, 1, MPI_COMM_WORLD)), MPI_ERR_RANK);
    long touched = faults() - before;
    CHECK(touched <= kMost, "the first error touches %ld pages, wanted at most %d", touched, kMost);

    OK(MPI_Bcast(values, 4, MPI_INT, 0, MPI_COMM_WORLD));
    before = faults();
    const int error = MPI_Bcast(values, rank == 0 ? 4 : 2, MPI_INT, 0, MPI_COMM_WORLD);
    touched = faults() - before;
    if (rank != 0) CHECK(error != MPI_SUCCESS, "a broadcast of 4 numbers into 2 succeeds");
    CHECK(touched <= kMost, "the first error of a collective touches %ld pages, wanted at most %d", touched, kMost);
    OK(MPI_Finalize());
    return 0;
}
