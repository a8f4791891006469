// A rank dies while another one is about to copy a message from its memory, and mpiexec has not noticed the death yet. The job ends with a
// message about the rank that died, and not about the one that could not copy.
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 1 << 20 };
static char data[kBytes];

/// Stops mpiexec, and lets another process continue it after a while, so that the receiver is the first to notice the death.
static void die_unnoticed(void) {
    const pid_t launcher = getppid();
    CHECK(kill(launcher, SIGSTOP) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setsid();  // the death ends this rank's process group
        usleep(300000);
        kill(launcher, SIGCONT);
        _exit(0);
    }
    raise(SIGKILL);
}

static int is_zombie(int pid) {
    char path[64], text[400] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE* file = fopen(path, "r");
    if (!file) return 1;  // mpiexec was faster
    const int is_there = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return !is_there || strstr(text, ") Z ") != NULL;
}

int main(int argc, char** argv) {
    int rank, pid = (int)getpid();
    MPI_Request request;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) {
        OK(MPI_Isend(data, kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
        OK(MPI_Send(&pid, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        die_unnoticed();
    }
    OK(MPI_Recv(&pid, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 3, MPI_COMM_WORLD));
    while (!is_zombie(pid)) usleep(100);
    OK(MPI_Recv(data, kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(0, "the message of a dead rank was received");
    return 0;
}
