/* Helpers without MPI, for the benchmarks and for bench/limits, which measures the machine without a library. */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Returns the seconds of a monotonic clock. */
static inline double bench_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the first number of an ascending list that is larger than the given one, then -1. Use: for (long n = bench_next_of(list, -1); n
 * >= 0; n = bench_next_of(list, n)). */
static inline long bench_next_of(const char* list, long number) {
    while (list) {
        long next = atol(list);
        if (next > number) return next;
        list = strchr(list, ',');
        if (list) ++list;
    }
    return -1;
}

#endif
