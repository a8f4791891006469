// A put to a dead rank must not write into another process, even if the kernel has reassigned the dead rank's process id. Rank 0 forks
// until a child has that id, then continues an epoch opened before the death (--enable-recovery). Runs as root, because it sets the
// kernel's next process id.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 1 << 16, kTries = 5000 };

static volatile sig_atomic_t go_on;

static void notice(int number) { go_on = number; }

/// Returns a child with that process id. It waits for `SIGUSR1` and exits with 0 if its memory at `watched` is unchanged.
static pid_t child_with(pid_t number, volatile long* watched) {
    signal(SIGUSR1, notice);
    for (int tries = 0; tries < kTries; ++tries) {
        FILE* next = fopen("/proc/sys/kernel/ns_last_pid", "w");
        CHECK(next, "the kernel's next process id can't be set");
        fprintf(next, "%d", number - 1);
        fclose(next);
        const pid_t child = fork();
        if (child == 0) {
            if (getpid() != number) _exit(0);
            alarm(250);
            sigset_t usr1, before;
            sigemptyset(&usr1);
            sigaddset(&usr1, SIGUSR1);
            sigprocmask(SIG_BLOCK, &usr1, &before);
            while (!go_on) sigsuspend(&before);
            _exit(*watched == 4711 ? 0 : 1);
        }
        if (child == number) return child;
        waitpid(child, NULL, 0);
    }
    return -1;
}

int main(int argc, char** argv) {
    int rank, pid = (int)getpid(), status = 0;
    long value = 1;
    MPI_Win win;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    // The memory is at the same address in both ranks, like static data in programs without address randomization.
    long* memory = mmap((void*)0x200000000000, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memory[1] = 4711;
    OK(MPI_Win_create(memory, kBytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    if (rank == 0) {
        OK(MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(1, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) raise(SIGKILL);
    for (int looks = 0; kill(pid, 0) == 0 && looks < 200000; ++looks)
        usleep(1000);  // waits until the launcher has reaped the rank
    const pid_t child = child_with(pid, memory + 1);
    CHECK(child == pid, "no process got the process id %d", pid);
    value = 666;
    const int put = MPI_Put(&value, 1, MPI_LONG, 1, 1, 1, MPI_LONG, win), flush = MPI_Win_flush(1, win);
    kill(child, SIGUSR1);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the put to a dead rank's memory has changed another process's");
    CHECK(put != MPI_SUCCESS || flush != MPI_SUCCESS, "the put to a dead rank has succeeded");
    printf("no other process was written to\n");
    fflush(stdout);
    _exit(0);
}
