/* What the machine allows, without any library: the floor beneath the benchmarks of the same names. Each
 * operation prints rows that fit those of its benchmark. */
#ifndef LIMITS_H
#define LIMITS_H

#include "../common/plain.h"

/* Runs and prints its rows; the text is a comma separated list of sizes or counts. Time in seconds per row.
 */
void limit_latency(const char* sizes, double time);
void limit_bandwidth(const char* sizes, double time);
void limit_bandwidth_both(const char* sizes, double time);
void limit_exchange(const char* sizes, double time); /* an all-to-all of two */
void limit_sum(const char* sizes, double time);      /* an allreduce of two */
void limit_message_rate(const char* sizes, double time);
void limit_barrier(const char* processes, double time);
void limit_spawn(const char* counts, const char* program);
void limit_hello(const char* counts, const char* program);
void limit_footprint(const char* counts);
void limit_placement(const char* cpus, double time);
void limit_busy(const char* cpu); /* does not return */
/* The process that limit_footprint looks at: says what it takes when told, then ends. */
int limit_footprint_child(void);

/* Rows are collected until all are there. */
void limits_row(const char* what, long size, double value);
/* Where the cores were during the rows to come, see ../common/placement.h; 0: not known. */
void limits_place(double placement);
void limits_print(const char* operation, const char* unit);

/* The median of n values; sorts them. */
double limits_median(double* values, int n);
/* The least of n times: what the machine allows shows when nothing else disturbs it. */
double limits_least(const double* values, int n);
/* Ends the program with a message, unless the condition holds. */
void limits_require(int condition, const char* message);

#endif
