/* Time until PEs that wait in shmem_long_wait_until end after a PE of their host has died.
 *
 *   mpiexec --enable-recovery -n N death MILLISECONDS
 *
 * Each PE prints its process id. The last one kills itself after MILLISECONDS and prints the time (CLOCK_MONOTONIC, ms) just before, while
 * all others wait for a value that no PE sets. Each ends the job with a sentence. bench/deaths watches the processes end. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long word;

int main(int argc, char** argv) {
    shmem_init();
    if (argc != 2) return fprintf(stderr, "usage: death MILLISECONDS\n"), 2;
    const double ms = atof(argv[1]);
    const int is_doomed = shmem_my_pe() == shmem_n_pes() - 1;
    printf("pe %d\n", (int)getpid());
    fflush(stdout);
    shmem_barrier_all();
    if (!is_doomed) shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
    const struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    nanosleep(&t, NULL);
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int length = snprintf(text, sizeof text, "died %.3f\n", (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6);
    if (write(1, text, (size_t)length) == length) raise(SIGKILL);
    return 1;
}
