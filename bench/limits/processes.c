/* Measures processes that start, do nothing and end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"

extern char** environ;

enum { kRepetitions = 10, kMaxProcesses = 1024 };

/* Starts a process with these descriptors as its standard output and (unless -1) its standard input. */
static pid_t start(const char* program, const char* argument, int output, int input) {
    char* arguments[] = {(char*)program, (char*)argument, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, 0);
    int error = posix_spawn(&child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    limits_require(error == 0, "can't start the program; it needs a path and takes --bare or --idle");
    return child;
}

static void open_pipe(int ends[2]) { limits_require(pipe2(ends, O_CLOEXEC) == 0, "can't make a pipe"); }

/* Measures the seconds until all processes have written their byte, and until all have ended. */
static void start_all(const char* program, long count, double* heard, double* ended) {
    int ends[2];
    char byte;
    open_pipe(ends);
    double before = bench_now();
    for (long i = 0; i < count; ++i) start(program, "--bare", ends[1], -1);
    for (long i = 0; i < count; ++i) limits_require(read(ends[0], &byte, 1) == 1, "a process wrote nothing");
    *heard = bench_now() - before;
    while (wait(NULL) > 0) {}
    *ended = bench_now() - before;
    close(ends[0]);
    close(ends[1]);
}

static void measure(const char* counts, const char* program, int until_end) {
    for (long n = 0; (n = bench_next_of(counts, n)) >= 0;) {
        double values[kRepetitions], heard, ended;
        for (int i = -1; i < kRepetitions; ++i) {
            start_all(program, n, &heard, &ended);
            if (i >= 0) values[i] = (until_end ? ended : heard) * 1e3;
        }
        double value = limits_least(values, kRepetitions);
        if (until_end) {
            limits_row("", n, value);
            continue;
        }
        limits_row("spawn", n, value);
        limits_row("first-message", n, value);
    }
}

void limit_spawn(const char* counts, const char* program) {
    measure(counts, program, 0);
    limits_print("spawn", "ms");
}

void limit_hello(const char* counts, const char* program) {
    measure(counts, program, 1);
    limits_print("hello", "ms");
}

static long number_after(const char* word) {
    char line[256];
    long number = 0;
    FILE* file = fopen("/proc/self/smaps_rollup", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, word, strlen(word)) == 0) number = atol(line + strlen(word));
    }
    fclose(file);
    return number;
}

int limit_footprint_child(void) {
    char byte;
    long own[2];
    limits_require(read(0, &byte, 1) == 1, "the parent sent no request");
    own[0] = number_after("Pss:");
    own[1] = number_after("Private_Dirty:");
    limits_require(write(1, own, sizeof own) == sizeof own, "the parent has closed the pipe");
    pause(); /* the process stays until the parent has read the values of all */
    return 0;
}

void limit_footprint(const char* counts) {
    for (long n = 0; (n = bench_next_of(counts, n)) >= 0;) {
        static double pss[kMaxProcesses], private[kMaxProcesses];
        pid_t children[kMaxProcesses];
        int down[2], up[2];
        long one[2];
        limits_require(n <= kMaxProcesses, "too many processes");
        open_pipe(down);
        open_pipe(up);
        for (long i = 0; i < n; ++i) children[i] = start("/proc/self/exe", "--idle", up[1], down[0]);
        usleep(100000);
        for (long i = 0; i < n; ++i) { /* asks one process at a time, because all share a pipe */
            limits_require(write(down[1], "x", 1) == 1 && read(up[0], one, sizeof one) == sizeof one,
                           "a process sent no answer");
            pss[i] = (double)one[0];
            private[i] = (double)one[1];
        }
        for (long i = 0; i < n; ++i) kill(children[i], SIGTERM);
        while (wait(NULL) > 0) {}
        close(down[0]);
        close(down[1]);
        close(up[0]);
        close(up[1]);
        limits_row("pss-kB", n, limits_median(pss, (int)n));
        limits_row("private-kB", n, limits_median(private, (int)n));
        limits_row("descriptors", n, 3);
    }
    limits_print("footprint", "kB or number");
}
