/* Measurements of the machine without any library: lower bounds for the benchmarks of the same names. The rows of each operation correspond
 * to those of its benchmark. */
#ifndef LIMITS_H
#define LIMITS_H

#include "../common/plain.h"

/* Run an operation and print its rows. `sizes` or `counts` is a comma-separated list; `time` is in seconds per row. */
void limit_latency(const char* sizes, double time);
void limit_bandwidth(const char* sizes, double time);
void limit_bandwidth_both(const char* sizes, double time);
void limit_exchange(const char* sizes, double time); /* runs an all-to-all of two processes */
void limit_sum(const char* sizes, double time);      /* runs an allreduce of two processes */
void limit_message_rate(const char* sizes, double time);
void limit_barrier(const char* processes, double time);
void limit_spawn(const char* counts, const char* program);
void limit_hello(const char* counts, const char* program);
void limit_footprint(const char* counts);
/* Wakes sleeping processes: each by a word of its own, whose pages the waker has not touched before (each) or has (each-again), or all by one
 * word; and lets all agree in shared memory after a common time. */
void limit_waking(const char* counts);
void limit_placement(const char* cpus, double time);
void limit_busy(const char* cpu); /* keeps a core busy; does not return */
/* Runs the process that limit_footprint examines: reports its memory on request, then ends. */
int limit_footprint_child(void);

/* Adds a row; rows are printed together at the end. */
void limits_row(const char* what, long size, double value);
/* Sets the placement of the cores that the following rows report, see ../common/placement.h; 0: unknown. */
void limits_place(double placement);
void limits_print(const char* operation, const char* unit);

/* Returns the median of n values; sorts them. */
double limits_median(double* values, int n);
/* Returns the least of n times, which shows the limit of the machine without disturbances. */
double limits_least(const double* values, int n);
/* Ends the program with a message, unless the condition holds. */
void limits_require(int condition, const char* message);

#endif
