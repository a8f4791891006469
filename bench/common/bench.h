/* What all benchmarks share: options, timing, statistics, output. Plain C and MPI: builds against any
 * library. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stddef.h>

#include "plain.h"

/* Options of all programs; each uses those that concern it. */
typedef struct {
    size_t min_bytes, max_bytes; /* -m MIN:MAX; sizes are 0 (where MIN is 0) and powers of two */
    const char* sizes;           /* -s LIST of sizes in ascending order, instead of -m */
    long iterations;             /* -i per batch; 0: as many as fill the time */
    int warm_up;                 /* -x iterations before the first batch */
    double seconds;              /* -t time per measured point */
    int batches;                 /* -b the reported value is the median over batches */
    int full;                    /* -f also minimum, mean and maximum */
    int check;                   /* -c check the data received */
    int json;                    /* --json instead of the table: one line */
    int children;                /* --spawn K: spawn K children, measure between parents and children; 0: one job */
    int window;                  /* -w messages on the way at a time */
    const char* operations;      /* -o LIST of operations, comma separated; NULL: all */
    const char* counts;          /* -k LIST of numbers in ascending order; NULL: the program's default */
    const char* compute;         /* --compute LIST of microseconds of work, in ascending order; NULL: as above */
    int both;                    /* --both directions at a time */
    int write;                   /* --write: buffers are written before each send */
    int exchanged;               /* --exchanged: buffers of messages are memory of MPI_Alloc_mem */
} Options;

/* Reads the command line; the first argument that is none is an error and ends the job. */
Options bench_options(int argc, char** argv, const char* about, Options defaults);

/* Defaults that fit most programs. */
Options bench_defaults(void);

/* 1 if the name is in options->operations or there is no such list. */
int bench_wanted(const Options* options, const char* name);

/* The size after the given one: 0, 1, 2, 4, ... or those of -s, then -1. Use:
 * for (long s = bench_next_size(o, -1); s >= 0; s = bench_next_size(o, s)). */
long bench_next_size(const Options* options, long bytes);

enum { kMaxTurns = 32 };

/* What came out of a measurement, in the unit of the report. */
typedef struct {
    double value; /* median over the batches */
    double min, mean, max;
    /* The value of each turn that was kept, if somebody looks where the cores are (placement.h): ns. */
    int turns;
    struct {
        double value, placement;
    } turn[kMaxTurns];
} Stats;

/* The statistics of n values (sorts them). */
Stats bench_stats(double* values, int n);

/* Seconds turned into what was done per second, times amount: the shortest time gives the maximum. */
Stats bench_rate(Stats seconds, double amount);

/* The same numbers times a factor. */
Stats bench_scaled(Stats stats, double factor);

/* Asks whether another turn is to be taken of what so many processes have just measured; keeps this one's
 * value in all, if it is to be kept. */
int bench_turn(Stats* all, Stats one, int processes);

/* The statistics over the processes of a communicator of one value each: valid on rank 0. */
Stats bench_over_processes(MPI_Comm comm, double own);

/* Output on one process. Rows are kept until the end so that a table's columns fit and JSON is one line. */
typedef struct Report Report;
Report* bench_report(const char* benchmark, const char* unit, const Options* options);
/* A row: what was measured ("" if the program measures one thing), its size or count, the result. */
void bench_row(Report* report, const char* what, long size, Stats stats);
/* Frees the report, and prints it first where prints is true; ranks says how many processes took part ("2",
 * "1+7"). */
void bench_print(Report* report, const char* ranks, int prints);
/* The same for a program of one job, all of whose processes took part: rank 0 prints. */
void bench_print_world(Report* report);

/* Two processes that measure with each other: ranks 0 and 1 of a job, or a parent and a spawned child. */
typedef struct {
    MPI_Comm comm;
    int peer;    /* rank of the other one in comm */
    int role;    /* 0 leads and reports, 1 follows, -1 is only present */
    int spawned; /* 1: between parent and child */
} Pair;
Pair bench_pair(const Options* options, char** argv);
void bench_pair_end(Pair* pair);

/* One batch of a pair's measurement: both call it with the same number of iterations. Returns the seconds
 * of it that don't count. */
typedef double (*PairRound)(const Pair* pair, long iterations, void* context);
/* Runs batches of round on both sides; on role 0 the result is seconds per iteration over the batches,
 * times scale. */
Stats bench_pair_measure(const Pair* pair, const Options* options, PairRound round, void* context, double scale);

/* Work that makes no MPI call and counts operations, not time: an interruption makes it longer. One unit is
 * about a microsecond on a current processor. */
void bench_compute(long units);
/* Units that take so many microseconds on this processor when nothing interrupts them: measured once. */
long bench_units(double microseconds);

/* Ends the job with a message if a check failed. */
void bench_require(int condition, const char* message);

/* Memory for messages: page aligned, touched, from bench_free'd by free(). */
void* bench_buffer(size_t bytes);
/* For messages of options->max_bytes, where --exchanged says. */
void* bench_message_buffer(const Options* options);
void bench_free_message_buffer(const Options* options, void* buffer);

/* A pattern that depends on position and seed, and its check (ends the job when it does not fit). */
void bench_fill(void* buffer, size_t bytes, unsigned seed);
void bench_verify(const void* buffer, size_t bytes, unsigned seed, const char* what);

#endif
