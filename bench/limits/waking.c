/* Measures how long the kernel takes to wake and schedule many processes, with nothing else to do: the least time of a revocation, an
 * agreement or a shrink on a host with more processes than cores. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"

enum { kRounds = 11, kRegion = 2 << 20, kPage = 4096 };

/* The memory of one process, in pages of its own, as in a job segment: what the others write to wake it, and its packet. */
struct cell {
    _Alignas(kPage) _Atomic uint32_t rings;
    _Alignas(kPage) _Atomic uint32_t packet, is_ready;
    double late; /* when it ran, after the start; us */
};

struct shared {
    _Atomic uint32_t common; /* a word on which all sleep */
    _Atomic double start;    /* 0: not known yet */
};

static struct shared* shared;

static struct cell* cell_of(long i) { return (struct cell*)((char*)shared + (size_t)(i + 1) * kRegion); }

static double now_us(void) { return bench_now() * 1e6; }

static void sleep_until(double when) {
    for (double left; (left = when - now_us()) > 0;) usleep((useconds_t)left + 1);
}

/* Sleeps on two words, as Starling's processes do in a job that continues after failures. */
static void sleep_on_two_words(struct cell* mine) {
    struct futex_waitv words[] = {{.uaddr = (uintptr_t)&mine->rings, .flags = FUTEX_32},
                                  {.uaddr = (uintptr_t)&shared->common, .flags = FUTEX_32}};
    while (!atomic_load(&mine->rings) && !atomic_load(&shared->common)) syscall(SYS_futex_waitv, words, 2, 0, NULL, 0);
}

static void wake(_Atomic uint32_t* word) {
    atomic_store(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void wake_each(long n, int is_cold) {
    for (long i = 1; i < n && !is_cold; ++i) atomic_fetch_add(&cell_of(i)->packet, atomic_load(&cell_of(i)->rings));
    atomic_store(&shared->start, now_us());
    for (long i = 1; i < n; ++i) {
        atomic_store(&cell_of(i)->packet, 1);
        wake(&cell_of(i)->rings);
    }
}

static void wake_each_cold(long n) { wake_each(n, 1); }
static void wake_each_warm(long n) { wake_each(n, 0); }
static void wake_all_at_once(long n) {
    (void)n;
    atomic_store(&shared->start, now_us());
    wake(&shared->common);
}
static void start_tree(long n) {
    (void)n;
    atomic_store(&shared->start, now_us() + 20e3);
}

static void be_woken(long me, long n) {
    (void)n;
    sleep_on_two_words(cell_of(me));
}

/* Votes go up a binomial tree, and the decision comes down; the processes yield between two looks. */
static void agree(long me, long n) {
    while (atomic_load(&shared->start) == 0) usleep(1000);
    sleep_until(atomic_load(&shared->start));
    for (long bit = 1; me + bit < n && !(me & bit); bit *= 2)
        while (!atomic_load(&cell_of(me + bit)->packet)) sched_yield();
    atomic_store(&cell_of(me)->packet, 1);
    while (me && !atomic_load(&cell_of(me)->rings)) sched_yield();
    for (long bit = 1; me + bit < n && !(me & bit); bit *= 2) atomic_store(&cell_of(me + bit)->rings, 1);
}

/* Returns the time until the last of the processes from `first` on has run, us. `cause` is called when all of them are asleep. */
static double once(long n, long first, void (*cause)(long n), void (*take_part)(long me, long n)) {
    const size_t bytes = (size_t)(n + 1) * kRegion;
    double last = 0;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    limits_require(shared != MAP_FAILED, "no memory");
    for (long me = first; me < n; ++me) {
        const pid_t child = fork();
        limits_require(child >= 0, "can't fork");
        if (child) continue;
        atomic_store(&cell_of(me)->rings, 0);
        atomic_store(&cell_of(me)->is_ready, 1);
        take_part(me, n);
        cell_of(me)->late = now_us() - atomic_load(&shared->start);
        usleep(100000); /* the ends of early processes must not delay the others */
        _exit(0);
    }
    for (long i = first; i < n; ++i)
        while (!atomic_load(&cell_of(i)->is_ready)) usleep(1000);
    usleep(30000);
    cause(n);
    while (wait(NULL) > 0) {}
    for (long i = first; i < n; ++i) last = cell_of(i)->late > last ? cell_of(i)->late : last;
    munmap(shared, bytes);
    return last;
}

static void add_row(const char* what, long n, long first, void (*cause)(long n), void (*take_part)(long me, long n)) {
    double values[kRounds];
    for (int i = 0; i < kRounds; ++i) values[i] = once(n, first, cause, take_part);
    limits_row(what, n, limits_median(values, kRounds));
}

void limit_waking(const char* counts) {
    for (long n = 0; (n = bench_next_of(counts, n)) >= 0;) {
        add_row("each", n, 1, wake_each_cold, be_woken);
        add_row("each-again", n, 1, wake_each_warm, be_woken);
        add_row("all-at-once", n, 1, wake_all_at_once, be_woken);
        add_row("agree", n, 0, start_tree, agree);
    }
    limits_print("waking", "us");
}
