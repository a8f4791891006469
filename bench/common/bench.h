/* Options, timing, statistics and output for all benchmarks. Plain C and MPI, so it builds with any MPI library. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stddef.h>

#include "plain.h"

/* Options of all programs; each program uses those that apply to it. */
typedef struct {
    size_t min_bytes, max_bytes; /* -m MIN:MAX; sizes are powers of two, and 0 if MIN is 0 */
    const char* sizes;           /* -s LIST: sizes in ascending order, instead of -m */
    long iterations;             /* -i: iterations per batch; 0: as many as fill the time */
    int warm_up;                 /* -x: iterations before the first batch */
    double seconds;              /* -t: time per measured value in s */
    int batches;                 /* -b: number of batches, whose median is the reported value */
    int full;                    /* -f: also report minimum, mean and maximum */
    int check;                   /* -c: check the received data */
    int json;                    /* --json: print one line of JSON instead of the table */
    int children;                /* --spawn K: spawn K children, measure between parents and children; 0: one job */
    int window;                  /* -w: number of messages in flight */
    const char* operations;      /* -o LIST: operations to run, comma separated; NULL: all */
    const char* counts;          /* -k LIST: numbers in ascending order; NULL: default */
    const char* compute;         /* --compute LIST: microseconds of work, ascending; NULL: default */
    int both;                    /* --both: both directions at the same time */
    int write;                   /* --write: buffers are written before each send */
    int exchanged;               /* --exchanged: buffers of messages are memory of MPI_Alloc_mem */
    int corners;                 /* --corners: blocks of a mesh also exchange their corners */
    int scatter;                 /* --scatter: blocks of a mesh are dealt to processes without regard to their neighbors */
    int every;                   /* --every N: number of steps between changes of a mesh */
} Options;

/* Reads the command line. An argument that is not an option ends the job with an error. */
Options bench_options(int argc, char** argv, const char* about, Options defaults);

/* Returns defaults that fit most programs. */
Options bench_defaults(void);

/* Returns 1 if the name is in options->operations or there is no such list. */
int bench_wanted(const Options* options, const char* name);

/* Returns the size after the given one: 0, 1, 2, 4, ... or those of -s, then -1. Use: for (long s = bench_next_size(o, -1); s >= 0; s =
 * bench_next_size(o, s)). */
long bench_next_size(const Options* options, long bytes);

enum { kMaxTurns = 32 };

/* The result of a measurement, in the unit of the report. */
typedef struct {
    double value; /* median of the values of the batches */
    double min, mean, max;
    /* The value of each turn (repetition of a measurement) that was kept, in ns. Filled only if the runner observes the placement of the
     * cores (placement.h). */
    int turns;
    struct {
        double value, placement;
    } turn[kMaxTurns];
} Stats;

/* Returns the statistics of n values (sorts them). */
Stats bench_stats(double* values, int n);

/* Converts seconds per operation to operations per second, times `amount`: the shortest time gives the maximum. */
Stats bench_rate(Stats seconds, double amount);

/* Returns the statistics multiplied by a factor. */
Stats bench_scaled(Stats stats, double factor);

/* Returns whether these processes should repeat the measurement of `one`. Adds its value to `all` unless it must be discarded. */
int bench_turn(Stats* all, Stats one, int processes);

/* Returns the statistics over the processes of a communicator, one value each: valid on rank 0. */
Stats bench_over_processes(MPI_Comm comm, double own);

/* Output of one process. Rows are stored until the end, so that the columns of a table fit and JSON is one line. */
typedef struct Report Report;
Report* bench_report(const char* benchmark, const char* unit, const Options* options);
/* Adds a row: the name of the operation ("" if the program measures only one), its size or count, the result. */
void bench_row(Report* report, const char* what, long size, Stats stats);
/* Frees the report, after printing it if `prints`; `ranks` is the number of participating processes ("2", "1+7"). */
void bench_print(Report* report, const char* ranks, int prints);
/* Prints the report on rank 0 and frees it; for programs of one job in which all processes took part. */
void bench_print_world(Report* report);

/* Two processes that measure together: ranks 0 and 1 of a job, or a parent and a spawned child. */
typedef struct {
    MPI_Comm comm;
    int peer;    /* rank of the partner in comm */
    int role;    /* 0 leads and reports, 1 follows, -1 is idle */
    int spawned; /* whether the pair is a parent and its child */
} Pair;
Pair bench_pair(const Options* options, char** argv);
void bench_pair_end(Pair* pair);

/* Runs one batch of a pair's measurement; both processes call it with the same number of iterations. Returns how many seconds it spent on
 * work that is not measured, such as a final barrier; bench_pair_measure() subtracts them from the batch's time. */
typedef double (*PairRound)(const Pair* pair, long iterations, void* context);
/* Runs batches of round on both sides; on role 0 the result is seconds per iteration over the batches,
 * times scale. */
Stats bench_pair_measure(const Pair* pair, const Options* options, PairRound round, void* context, double scale);

/* Computes without MPI calls. The work is a number of operations, not a time, so an interruption prolongs it. One unit is about a
 * microsecond on a current processor. */
void bench_compute(long units);
/* Returns the units that take that many microseconds on this processor without interruptions; measured once. */
long bench_units(double microseconds);

/* Ends the job with the message unless the condition holds. */
void bench_require(int condition, const char* message);

/* Returns memory for messages: page aligned and touched; freed by free(). */
void* bench_buffer(size_t bytes);
/* Allocates memory for messages of options->max_bytes, by MPI_Alloc_mem with --exchanged. */
void* bench_message_buffer(const Options* options);
void bench_free_message_buffer(const Options* options, void* buffer);

/* bench_fill() writes a pattern that depends on position and seed; bench_verify() checks it and ends the job if it differs. */
void bench_fill(void* buffer, size_t bytes, unsigned seed);
void bench_verify(const void* buffer, size_t bytes, unsigned seed, const char* what);

#endif
