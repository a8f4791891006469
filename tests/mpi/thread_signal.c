// A program that receives signals by sigwait must get them: all threads of the library block all signals.
#include <signal.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
    int level, got = 0;
    sigset_t set;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        usleep(2000);  // waits until the other threads are asleep
        CHECK(kill(getpid(), SIGUSR1) == 0);
        CHECK(sigwait(&set, &got) == 0);
        EXPECT_INT(got, SIGUSR1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
