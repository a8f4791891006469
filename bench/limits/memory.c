/* Measures processes that communicate through shared memory. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/placement.h"
#include "limits.h"

enum { kBatches = 50, kWindow = 64, kSlots = 64, kLine = 64 };

typedef struct {
    _Alignas(kLine) atomic_long flag;        /* number of iterations that this side has finished */
    char small[kLine - sizeof(atomic_long)]; /* short messages, in the flag's own cache line */
    char* data;
} Side;

typedef struct {
    Side side[2];
    _Alignas(kLine) struct {
        atomic_long number; /* number of the message in the slot; 0: free */
        char bytes[kLine - sizeof(atomic_long)];
    } slot[kSlots];
    _Alignas(kLine) atomic_long arrived;
    _Alignas(kLine) atomic_long generation;
    _Alignas(kLine) atomic_long stop;
} Shared;

static void* share(size_t bytes) {
    void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    limits_require(memory != MAP_FAILED, "can't map memory");
    memset(memory, 0, bytes);
    return memory;
}

/* Binds side 0 and side 1 to different cores, if there are two. Only the first call sees all cores. */
static void pin(int side) {
    static cpu_set_t all;
    cpu_set_t one;
    if (CPU_COUNT(&all) == 0) sched_getaffinity(0, sizeof all, &all);
    if (CPU_COUNT(&all) < 2) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all) || side-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

/* Polls until the flag reaches the value; yields now and then, in case both sides share a core. */
static void await(atomic_long* flag, long value) {
    for (long polls = 1; atomic_load_explicit(flag, memory_order_acquire) < value; ++polls) {
        if (polls % 1000 == 0) sched_yield();
    }
}

/* Performs one side's part of the iterations from `first` on; returns when the other side has done its part too. */
typedef void (*Round)(Shared*, int side, char* own, size_t bytes, long first, long iterations);

/* Returns the shortest time of an iteration in seconds, over batches; a child process is the second side. */
static double measure_once(Round round, size_t bytes, double time) {
    Shared* s = share(sizeof *s);
    size_t room = bytes ? 2 * bytes : 1; /* some operations store a result behind the data that they read */
    char* own = malloc(room);
    double values[kBatches];
    memset(own, 1, room);
    for (int side = 0; side < 2; ++side) s->side[side].data = share(room);
    atomic_long* order = share(sizeof *order); /* number of iterations that the child must reach; negative: end */
    pid_t child = fork();
    limits_require(child >= 0, "can't fork");
    long done = 0, iterations = 1;
    pin(child == 0);
    while (child == 0) {
        long until;
        while ((until = atomic_load(order)) == done) sched_yield();
        if (until < 0) _exit(0);
        round(s, 1, own, bytes, done, until - done);
        done = until;
    }
    for (int batch = -3; batch < kBatches;) {
        double before = bench_now();
        atomic_store(order, done + iterations);
        round(s, 0, own, bytes, done, iterations);
        double passed = bench_now() - before;
        done += iterations;
        if (batch < 0 && passed < time / kBatches) {
            iterations *= 2;
            batch = -3;
            continue;
        }
        if (batch >= 0) values[batch] = passed / (double)iterations;
        ++batch;
    }
    atomic_store(order, -1);
    waitpid(child, NULL, 0);
    for (int side = 0; side < 2; ++side) munmap(s->side[side].data, room);
    munmap(order, sizeof *order);
    munmap(s, sizeof *s);
    free(own);
    return limits_least(values, kBatches);
}

static void place_before(void) {
    static int placed;
    double placement;
    if (!placed++) bench_placement(1, &placement);
}

/* Returns whether the cores have moved, so that the measurement must be repeated. */
static int moved(void) {
    double placement;
    int again = bench_placement(1, &placement);
    limits_place(placement);
    return again;
}

static double measure(Round round, size_t bytes, double time) {
    double value;
    place_before();
    do { value = measure_once(round, bytes, time); } while (moved());
    return value;
}

static void put(Side* side, const char* own, size_t bytes, long number) {
    if (bytes <= sizeof side->small) memcpy(side->small, own, bytes);
    atomic_store_explicit(&side->flag, number, memory_order_release);
}

static void take(Side* side, char* own, size_t bytes, long number) {
    await(&side->flag, number);
    memcpy(own, bytes <= sizeof side->small ? side->small : side->data, bytes);
}

static void ping_pong(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    for (long i = first + 1; i <= first + iterations; ++i) {
        if (side == 0) put(&s->side[0], own, bytes, i);
        take(&s->side[1 - side], own, bytes, i);
        if (side == 1) put(&s->side[1], own, bytes, i);
    }
}

static void windows(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    for (long i = first + 1; i <= first + iterations; ++i) {
        if (side == 0) {
            atomic_store_explicit(&s->side[0].flag, i, memory_order_release);
            await(&s->side[1].flag, i);
            continue;
        }
        await(&s->side[0].flag, i);
        for (int k = 0; k < kWindow; ++k) {
            memcpy(own, s->side[0].data, bytes);
            __asm__ volatile("" ::"r"(own) : "memory"); /* keeps the compiler from removing the copy */
        }
        atomic_store_explicit(&s->side[1].flag, i, memory_order_release);
    }
}

static void stream(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    for (long i = first * kWindow; i < (first + iterations) * kWindow; ++i) {
        atomic_long* number = &s->slot[i % kSlots].number;
        long wanted = side == 0 ? 0 : i + 1;
        for (long polls = 1; atomic_load_explicit(number, memory_order_acquire) != wanted; ++polls) {
            if (polls % 1000 == 0) sched_yield();
        }
        memcpy(side == 0 ? s->slot[i % kSlots].bytes : own, side == 0 ? own : s->slot[i % kSlots].bytes, bytes);
        atomic_store_explicit(number, side == 0 ? i + 1 : 0, memory_order_release);
    }
}

static void tell(Side* side, long number) { atomic_store_explicit(&side->flag, number, memory_order_release); }

/* Each side reads the other's window. */
static void windows_both_ways(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    for (long i = first + 1; i <= first + iterations; ++i) {
        tell(&s->side[side], i);
        await(&s->side[1 - side].flag, i);
        for (int k = 0; k < kWindow; ++k) {
            memcpy(own, s->side[1 - side].data, bytes);
            __asm__ volatile("" ::"r"(own) : "memory");
        }
    }
}

/* Each side reads the other's block and copies its own. */
static void exchange(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    for (long i = first + 1; i <= first + iterations; ++i) {
        tell(&s->side[side], i);
        await(&s->side[1 - side].flag, i);
        memcpy(own, s->side[1 - side].data, bytes);
        memcpy(own + bytes, s->side[side].data, bytes);
        __asm__ volatile("" ::"r"(own) : "memory");
    }
}

#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3"))) /* compiled with vector instructions, as libraries are */
#endif
static void
add(int* restrict sums, const int* restrict a, const int* restrict b, size_t n) {
    for (size_t k = 0; k < n; ++k) sums[k] = a[k] + b[k];
}

/* Each side adds half of the numbers in place, and reads the other's half of the sums. */
static void add_up(Shared* s, int side, char* own, size_t bytes, long first, long iterations) {
    size_t half = bytes / 2, from = side == 0 ? 0 : half;
    int *mine = (int*)(s->side[side].data + from), *other = (int*)(s->side[1 - side].data + from);
    int* sums = (int*)(s->side[side].data + bytes + from);
    for (long i = first + 1; i <= first + iterations; ++i) {
        tell(&s->side[side], 2 * i - 1);
        await(&s->side[1 - side].flag, 2 * i - 1);
        add(sums, mine, other, half / sizeof(int));
        tell(&s->side[side], 2 * i);
        await(&s->side[1 - side].flag, 2 * i);
        memcpy(own + from, sums, half);
        memcpy(own + half - from, s->side[1 - side].data + bytes + half - from, half);
        __asm__ volatile("" ::"r"(own) : "memory");
    }
}

void limit_latency(const char* sizes, double time) {
    for (long bytes = -1; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_row("", bytes, measure(ping_pong, (size_t)bytes, time) * 1e6 / 2);
    }
    limits_print("latency", "us");
}

void limit_bandwidth(const char* sizes, double time) {
    for (long bytes = -1; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_row("", bytes, 1e-6 * (double)bytes * kWindow / measure(windows, (size_t)bytes, time));
    }
    limits_print("bandwidth", "MB/s");
}

void limit_bandwidth_both(const char* sizes, double time) {
    for (long bytes = -1; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_row("", bytes, 2e-6 * (double)bytes * kWindow / measure(windows_both_ways, (size_t)bytes, time));
    }
    limits_print("bandwidth-both", "MB/s");
}

void limit_exchange(const char* sizes, double time) {
    for (long bytes = -1; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_row("alltoall", bytes, measure(exchange, (size_t)bytes, time) * 1e6);
    }
    limits_print("alltoall", "us");
}

void limit_sum(const char* sizes, double time) {
    for (long bytes = 7; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_row("allreduce", bytes, measure(add_up, (size_t)bytes, time) * 1e6);
    }
    limits_print("allreduce", "us");
}

void limit_message_rate(const char* sizes, double time) {
    for (long bytes = -1; (bytes = bench_next_of(sizes, bytes)) >= 0;) {
        limits_require(bytes <= (long)sizeof(((Shared*)NULL)->slot[0].bytes), "a message must fit its slot");
        limits_row("", bytes, 1e-6 * kWindow / measure(stream, (size_t)bytes, time));
    }
    limits_print("message-rate", "million/s");
}

/* A barrier; the last process to arrive releases the others. */
static void barrier(Shared* s, long processes, long polls) {
    long generation = atomic_load_explicit(&s->generation, memory_order_acquire);
    if (atomic_fetch_add(&s->arrived, 1) == processes - 1) {
        atomic_store(&s->arrived, 0);
        atomic_store_explicit(&s->generation, generation + 1, memory_order_release);
        return;
    }
    for (long k = 0; atomic_load_explicit(&s->generation, memory_order_acquire) == generation; ++k) {
        if (k >= polls) sched_yield();
    }
}

static double barrier_once(long processes, double time) {
    Shared* s = share(sizeof *s);
    long polls = processes <= sysconf(_SC_NPROCESSORS_ONLN) ? 1000 : 0, rank = 0, rounds = 0;
    for (long i = 1; i < processes && rank == 0; ++i) {
        pid_t child = fork();
        limits_require(child >= 0, "can't fork");
        if (child == 0) rank = i;
    }
    double values[kBatches];
    for (int batch = -2; batch < kBatches; ++batch) {
        double before = bench_now(), passed = 0;
        for (rounds = 0; !atomic_load(&s->stop); rounds += 100) {
            for (int k = 0; k < 100; ++k) barrier(s, processes, polls);
            passed = bench_now() - before;
            if (rank == 0 && passed > time / kBatches) atomic_store(&s->stop, 1);
            barrier(s, processes, polls); /* between two barriers, all processes see the same value */
        }
        if (batch >= 0) values[batch] = passed / (double)rounds;
        barrier(s, processes, polls);
        if (rank == 0) atomic_store(&s->stop, 0);
        barrier(s, processes, polls);
    }
    if (rank > 0) _exit(0);
    while (wait(NULL) > 0) {}
    munmap(s, sizeof *s);
    return limits_least(values, kBatches);
}

static double measure_barrier(long processes, double time) {
    double value;
    place_before();
    do { value = barrier_once(processes, time); } while (moved());
    return value;
}

void limit_barrier(const char* processes, double time) {
    for (long n = 1; (n = bench_next_of(processes, n)) >= 0;) { limits_row("barrier", 0, measure_barrier(n, time) * 1e6); }
    limits_print("barrier", "us");
}
