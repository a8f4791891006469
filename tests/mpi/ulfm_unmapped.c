// A child cannot map its parents' job for some time, as if it had no descriptor left. Its vote must reach the parents nevertheless, and it must
// notice the death of a parent with which it has not communicated. Run with two processes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "dynamic.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void) {
    puts("a sanitizer intercepts open()\nthe parents were mapped");
    return 0;
}
#else

static char own_segment[64];   // path of the segment that was opened first: that of the process's own job
static volatile int refusing;  // whether the segments of other jobs cannot be opened
static volatile int refused;   // how often that was so

/// Replaces libc's function in the program and in the library.
int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    int pid, descriptor;
    if (sscanf(path, "/proc/%d/fd/%d", &pid, &descriptor) == 2) {
        if (!own_segment[0]) snprintf(own_segment, sizeof own_segment, "%s", path);
        if (refusing && strcmp(path, own_segment)) {
            ++refused;
            errno = EMFILE;
            return -1;
        }
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void run_child(const char* until) {
    MPI_Comm parents;
    MPI_Request request;
    int flag = 5, value;
    refusing = 1;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_get_parent(&parents));
    OK(MPI_Comm_set_errhandler(parents, MPI_ERRORS_RETURN));
    CHECK(refused > 0, "nothing was refused");
    if (until[0] == '-') {
        const int before = refused;
        OK(MPIX_Comm_iagree(parents, &flag, &request));
        CHECK(refused > before, "the vote was not refused");
        refusing = 0;
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT_INT(flag, 1);
    } else {
        OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, parents, &request));
        refusing = 0;
        OK(unlink(until));
        EXPECT_INT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        OK(MPI_Send(&flag, 1, MPI_INT, 1, 2, parents));
    }
    OK(MPI_Finalize());
}

int main(int argc, char** argv) {
    if (argc > 1) {
        run_child(argv[1]);
        return 0;
    }
    int rank, flag = 3;
    MPI_Comm children;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    children = spawn_self("-", 1, MPI_COMM_WORLD);
    OK(MPIX_Comm_agree(children, &flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Comm_free(&children));
    char until[] = "/tmp/starling-tests-unmapped-XXXXXX";
    if (rank == 0) close(mkstemp(until));
    children = spawn_self(until, 1, MPI_COMM_WORLD);
    if (rank == 0) {
        while (access(until, F_OK) == 0) usleep(1000);
        raise(SIGKILL);
    }
    OK(MPI_Recv(&flag, 1, MPI_INT, 0, 2, children, MPI_STATUS_IGNORE));
    puts("the parents were mapped");
    OK(MPI_Finalize());
    return 0;
}
#endif
