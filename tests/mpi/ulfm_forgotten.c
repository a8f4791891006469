// Rank 0 dies after it has sent the decision of an agreement to rank 1 and before it sends it to rank 2. Rank 1 frees the communicator, and
// then so many others that it forgets the decision. Rank 2 must get it nevertheless. Run with three processes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "dynamic.h"

enum { kMoreThanKept = 80 };

static volatile int dies_at_wake;

/// Replaces libc's function in the library: rank 0 dies when it wakes rank 1, to which it has just sent the decision. Reads six arguments, as
/// libc does, although most callers pass fewer.
__attribute__((no_sanitize("address"))) long syscall(long number, ...) {
    static long (*libcs)(long, ...);
    if (!libcs) *(void**)&libcs = dlsym(RTLD_NEXT, "syscall");
    long words[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; ++i) words[i] = va_arg(arguments, long);
    va_end(arguments);
    if (dies_at_wake && number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_BITSET) raise(SIGKILL);
    return libcs(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/// Agrees on other communicators and frees them.
static void forget(void) {
    for (int i = 0; i < kMoreThanKept; ++i) {
        MPI_Comm alone;
        int flag = i;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &alone));
        OK(MPIX_Comm_agree(alone, &flag));
        OK(MPI_Comm_free(&alone));
    }
}

int main(int argc, char** argv) {
    int rank, flag, result[2] = {0, 0}, other[2];
    char until[] = "/tmp/starling-tests-forgotten-XXXXXX";
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) close(mkstemp(until));
    OK(MPI_Bcast(until, sizeof until, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    flag = ~(1 << rank);
    if (rank == 0) {
        usleep(200000);  // rank 1 sleeps by now, most likely; if not, this test shows nothing
        dies_at_wake = 1;
        (void)MPIX_Comm_agree(comm, &flag);
        raise(SIGKILL);
    } else if (rank == 1) {
        result[1] = class_of(MPIX_Comm_agree(comm, &flag));
        OK(MPI_Comm_free(&comm));
        forget();
        OK(unlink(until));
    } else {
        OK(MPIX_Comm_iagree(comm, &flag, &request));
        while (access(until, F_OK) == 0) usleep(1000);
        result[1] = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_free(&comm));
    }
    result[0] = flag;
    OK(MPI_Sendrecv(result, 2, MPI_INT, 3 - rank, 1, other, 2, MPI_INT, 3 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(other[0], result[0]);
    EXPECT_INT(other[1], result[1]);
    if (rank == 1) puts("both got one decision");
    OK(MPI_Finalize());
    return 0;
}
