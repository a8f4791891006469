// Deaths of ranks, for test programs.
#pragma once

#include <signal.h>
#include <sys/time.h>

#include "check.h"

/// Returns true on the `count` doomed ranks of the intra-communicator when all other ranks have called this function, and false on the others at
/// once. A rank that is still in an earlier collective call may get an error from it if another rank dies: a barrier before the death is not
/// enough.
__attribute__((unused)) static int is_doomed_and_all_are_ready(MPI_Comm comm, const int* doomed, int count) {
    enum { kTag = 4711 };
    int rank, size, is_doomed = 0;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int i = 0; i < count; ++i) {
        is_doomed |= doomed[i] == rank;
        if (doomed[i] != rank) OK(MPI_Send(NULL, 0, MPI_INT, doomed[i], kTag, comm));
    }
    for (int other = 0; other < size && is_doomed; ++other)
        if (other != rank) OK(MPI_Recv(NULL, 0, MPI_INT, other, kTag, comm, MPI_STATUS_IGNORE));
    return is_doomed;
}

/// Kills the doomed ranks when all ranks have called this function, and returns on the others.
__attribute__((unused)) static void kill_all_when_ready(MPI_Comm comm, const int* doomed, int count) {
    if (is_doomed_and_all_are_ready(comm, doomed, count)) raise(SIGKILL);
}

/// The same for one rank.
__attribute__((unused)) static void kill_when_all_are_ready(MPI_Comm comm, int doomed) {
    kill_all_when_ready(comm, &doomed, 1);
}

/// Kills this process after `us` microseconds; at once if that is 0.
__attribute__((unused)) static void die_after(long us) {
    const struct itimerval when = {.it_value = {us / 1000000, us % 1000000}};
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGALRM, &action, NULL);
    if (us == 0) raise(SIGALRM);
    setitimer(ITIMER_REAL, &when, NULL);
}

/// Kills this process at a random moment within at most `most_us` microseconds.
__attribute__((unused)) static void die_within(uint64_t* state, long most_us) {
    die_after(1 + (long)(next_random(state) % (uint64_t)most_us));
}
