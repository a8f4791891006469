/* limits: measures the machine without a library; see limits.h.
 *
 *     limits latency 8,1024 0.1         half a round trip: a flag and a copy out of the other process's memory, us
 *     limits bandwidth 65536 0.1        copies out of the other process's memory, 64 per answer, MB/s
 *     limits message-rate 8 0.1         messages in slots of 64 bytes, one way, million/s
 *     limits barrier 2,16 0.1           a barrier of processes that count in shared memory and yield, us
 *     limits spawn 1,32 PROGRAM         posix_spawn of "PROGRAM --bare" until each has written a byte, ms
 *     limits hello 64 PROGRAM           posix_spawn of "PROGRAM --bare" until each has ended, ms
 *     limits placement 0,1 0.005        half a round trip of a cache line between two cores, ns
 *     limits busy 0                     keeps a core busy until it is ended
 *     limits footprint 16               memory of idle processes without a library, kB
 *     limits waking 16,64               the time until one process has woken all others, and until all have agreed, us */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "limits.h"

enum { kMaxRows = 100 };
static struct {
    char what[40];
    long size;
    double value, placement;
} rows[kMaxRows];
static int row_count;
static double place;

void limits_row(const char* what, long size, double value) {
    limits_require(row_count < kMaxRows, "too many rows");
    snprintf(rows[row_count].what, sizeof rows[0].what, "%s", what);
    rows[row_count].size = size;
    rows[row_count].placement = place;
    rows[row_count++].value = value;
}

void limits_place(double placement) { place = placement; }

void limits_print(const char* operation, const char* unit) {
    printf("{\"benchmark\": \"limits-%s\", \"unit\": \"%s\", \"ranks\": \"\", \"rows\": [", operation, unit);
    for (int i = 0; i < row_count; ++i) {
        printf("%s{\"what\": \"%s\", \"size\": %ld, \"value\": %.6g, \"turns\": [", i ? ", " : "", rows[i].what, rows[i].size,
               rows[i].value);
        if (rows[i].placement > 0) printf("[%.6g, %.6g]", rows[i].value, rows[i].placement);
        printf("]}");
    }
    printf("]}\n");
}

static int compare_doubles(const void* a, const void* b) {
    double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

double limits_median(double* values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double limits_least(const double* values, int n) {
    double least = values[0];
    for (int i = 1; i < n; ++i) least = values[i] < least ? values[i] : least;
    return least;
}

void limits_require(int condition, const char* message) {
    if (condition) return;
    fprintf(stderr, "limits: %s\n", message);
    exit(3);
}

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--idle") == 0) return limit_footprint_child();
    limits_require(argc >= 3, "usage: limits OPERATION LIST [TIME or PROGRAM]; operations: see main.c");
    const char *operation = argv[1], *list = argv[2], *third = argc > 3 ? argv[3] : "0.1";
    if (strcmp(operation, "latency") == 0) {
        limit_latency(list, atof(third));
    } else if (strcmp(operation, "bandwidth") == 0) {
        limit_bandwidth(list, atof(third));
    } else if (strcmp(operation, "bandwidth-both") == 0) {
        limit_bandwidth_both(list, atof(third));
    } else if (strcmp(operation, "alltoall") == 0) {
        limit_exchange(list, atof(third));
    } else if (strcmp(operation, "allreduce") == 0) {
        limit_sum(list, atof(third));
    } else if (strcmp(operation, "message-rate") == 0) {
        limit_message_rate(list, atof(third));
    } else if (strcmp(operation, "barrier") == 0) {
        limit_barrier(list, atof(third));
    } else if (strcmp(operation, "spawn") == 0) {
        limit_spawn(list, third);
    } else if (strcmp(operation, "hello") == 0) {
        limit_hello(list, third);
    } else if (strcmp(operation, "placement") == 0) {
        limit_placement(list, atof(third));
    } else if (strcmp(operation, "busy") == 0) {
        limit_busy(list);
    } else if (strcmp(operation, "footprint") == 0) {
        limit_footprint(list);
    } else if (strcmp(operation, "waking") == 0) {
        limit_waking(list);
    } else {
        limits_require(0, "unknown operation");
    }
    return 0;
}
