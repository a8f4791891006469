// Counts the partners of a program's PEs: a library that is loaded before OpenSHMEM's (LD_PRELOAD) and wraps shmem_init and shmem_finalize
// through the profiling interface. PE 0 prints one line of JSON with the mean and the maximum of each counter over the PEs. The line also has the time in shmem_init in ms, by the clock and by the processor, and how often the process slept. Another number is the time in which it was runnable but had no core (-1: unknown to the kernel).
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

/// Returns the time in which the process was runnable but had no core, in ms, from /proc/self/schedstat; -1: unknown to the kernel.
static double waited_for_a_core(int schedstat) {
    char text[128];
    const ssize_t bytes = pread(schedstat, text, sizeof text - 1, 0);
    if (bytes <= 0) return -1;
    text[bytes] = '\0';
    char* behind;
    strtod(text, &behind);  // skips the first number, the time in which the process ran
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
    // The processor's clock is read first. If the time slice is used up, as it may be after exec(), this call waits for the next turn. That
    // wait is not part of shmem_init's time, but was most of the measured time when hundreds of PEs shared a core.
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
