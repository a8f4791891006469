/* Measures how close two cores are, and keeps a core busy. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "limits.h"

enum { kRounds = 500, kMaxBatches = 1000, kLine = 64 };

/* Two cache lines that move between the cores, one per direction. */
static struct {
    _Alignas(kLine) atomic_long there;
    _Alignas(kLine) atomic_long back;
    int cpu[2];
} ball;

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    limits_require(sched_setaffinity(0, sizeof set, &set) == 0, "can't run on that core");
}

static void* answer(void* unused) {
    stay_on(ball.cpu[1]);
    for (long i = 1;; ++i) {
        long number;
        while ((number = atomic_load_explicit(&ball.there, memory_order_acquire)) != i) {
            if (number < 0) return unused;
            __asm__ volatile("" ::: "memory");
        }
        atomic_store_explicit(&ball.back, i, memory_order_release);
    }
}

/* Prints the median over short batches, so that an interruption or a move of a core during a batch does not count. */
void limit_placement(const char* cpus, double time) {
    static double values[kMaxBatches];
    pthread_t other;
    int batches = 0;
    limits_require(sscanf(cpus, "%d,%d", &ball.cpu[0], &ball.cpu[1]) == 2, "give two cores, such as 0,1");
    stay_on(ball.cpu[0]);
    limits_require(pthread_create(&other, NULL, answer, NULL) == 0, "can't make a thread");
    double begin = bench_now(), before = begin;
    for (long i = 1; batches < kMaxBatches && (batches < 10 || before - begin < time); ++i) {
        atomic_store_explicit(&ball.there, i, memory_order_release);
        while (atomic_load_explicit(&ball.back, memory_order_acquire) != i) {}
        if (i % kRounds == 0) {
            double now = bench_now();
            values[batches++] = (now - before) / kRounds / 2 * 1e9;
            before = now;
        }
    }
    atomic_store(&ball.there, -1);
    pthread_join(other, NULL);
    limits_row("", 0, limits_median(values, batches));
    limits_print("placement", "ns");
}

/* Simulates another program: counts on a core until it or its parent ends. */
void limit_busy(const char* cpu) {
    volatile unsigned long counter = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(atoi(cpu));
    for (;;) ++counter;
}
