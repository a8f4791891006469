// Whom a program's PEs have talked to when it calls shmem_finalize: a library that is loaded before OpenSHMEM's (LD_PRELOAD) and
// stands in front of shmem_init and shmem_finalize by the profiling interface. PE 0 prints one line of JSON: of each counter the mean
// and the greatest over the PEs; and the time in shmem_init, ms, by the clock and by the processor, what of it the process could run and had
// no core (-1: the kernel doesn't say), and how often it slept.
#include <fcntl.h>
#include <mpi.h>
#include <pshmem.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/shmem/counters.h"

enum { kWall = kCounters, kProcessor, kWaited, kSlept, kAll };
static const char* const kTimes[] = {"init_ms", "init_cpu_ms", "init_waited_ms", "init_slept"};
static double mine[kAll];

static double milliseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/// How long the process could run and had no core, ms, of /proc/self/schedstat; -1: the kernel does not say.
static double waited_for_a_core(int schedstat) {
    char text[128];
    const ssize_t bytes = pread(schedstat, text, sizeof text - 1, 0);
    if (bytes <= 0) return -1;
    text[bytes] = '\0';
    char* behind;
    strtod(text, &behind);  // how long it has run
    return 1e-6 * strtod(behind, NULL);
}

static double sleeps(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_nvcsw;
}

static int start(int requested, int* provided) {
    start_counters();
    const int schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    // The processor's clock first: who asks for it when its slice is used up, as after exec() it may be, waits for its next turn there. That is
    // none of shmem_init's time, and was most of what the clock said of it where hundreds of PEs share a core.
    const double worked = milliseconds(CLOCK_PROCESS_CPUTIME_ID), slept = sleeps();
    const double waited = waited_for_a_core(schedstat), wall = milliseconds(CLOCK_MONOTONIC);
    const int result = pshmem_init_thread(requested, provided);
    mine[kWall] = milliseconds(CLOCK_MONOTONIC) - wall;
    mine[kWaited] = waited < 0 ? -1 : waited_for_a_core(schedstat) - waited;
    mine[kProcessor] = milliseconds(CLOCK_PROCESS_CPUTIME_ID) - worked;
    mine[kSlept] = sleeps() - slept;
    if (schedstat >= 0) close(schedstat);
    return result;
}

void shmem_init(void) {
    int provided;
    start(SHMEM_THREAD_SINGLE, &provided);
}

int shmem_init_thread(int requested, int* provided) { return start(requested, provided); }

void shmem_finalize(void) {
    for (int i = 0; i < kCounters; i++) mine[i] = (double)counter(i);
    double* here = pshmem_malloc(3 * sizeof mine);
    for (int i = 0; i < kAll; i++) here[i] = mine[i];
    pshmem_double_sum_reduce(SHMEM_TEAM_WORLD, here + kAll, here, kAll);
    pshmem_double_max_reduce(SHMEM_TEAM_WORLD, here + 2 * kAll, here, kAll);
    if (pshmem_my_pe() == 0) {
        printf("\n{\"pes\": %d", pshmem_n_pes());
        for (int i = 0; i < kAll; i++)
            printf(", \"%s\": [%.3f, %.3f]", i < kCounters ? kCounterNames[i] : kTimes[i - kCounters],
                   here[kAll + i] / pshmem_n_pes(), here[2 * kAll + i]);
        printf("}\n");
        fflush(stdout);
    }
    pshmem_finalize();
}
