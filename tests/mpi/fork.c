// A forked child runs its parent's exit handlers, among them MPI_Finalize. The parent must stay unharmed and still receive messages.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void end(void) {
    int finalized;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Finalize();
}

/// Forks a child that calls exit(), and waits for it.
static void run_child(void) {
    const pid_t child = fork();
    if (child == 0) exit(0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(status == 0, "the child ended with status %x", (unsigned)status);
}

int main(int argc, char** argv) {
    enum { kBytes = 1 << 20 };
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    atexit(end);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char* data = malloc(kBytes);
    memset(data, rank + 1, kBytes);
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request send;
    OK(MPI_Isend(data, kBytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, &send));
    run_child();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // While the sender waits in the library, it must not conclude that the receiver has finalized.
    if (rank % 2 == 1) usleep(300000);
    char* got = malloc(kBytes);
    MPI_Request receive;
    OK(MPI_Irecv(got, kBytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &receive));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    CHECK(got[0] == from + 1 && got[kBytes - 1] == from + 1, "what arrived");
    // The parent's exit handler calls MPI_Finalize.
    free(got);
    free(data);
    return 0;
}
