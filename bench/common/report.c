#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "placement.h"

typedef struct {
    char what[40];
    long size;
    Stats stats;
} Row;

struct Report {
    const char* benchmark;
    const char* unit;
    const Options* options;
    Row* rows;
    int count;
};

static int compare_doubles(const void* a, const void* b) {
    double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

Stats bench_stats(double* values, int n) {
    Stats stats = {0};
    if (n <= 0) return stats;
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    for (int i = 0; i < n; ++i) stats.mean += values[i] / n;
    stats.value = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    stats.min = values[0];
    stats.max = values[n - 1];
    return stats;
}

Stats bench_rate(Stats seconds, double amount) {
    Stats rate = seconds;
    rate.value = amount / seconds.value;
    rate.min = amount / seconds.max;
    rate.mean = amount / seconds.mean;
    rate.max = amount / seconds.min;
    for (int i = 0; i < rate.turns; ++i) rate.turn[i].value = amount / seconds.turn[i].value;
    return rate;
}

Stats bench_scaled(Stats stats, double factor) {
    stats.value *= factor;
    stats.min *= factor;
    stats.mean *= factor;
    stats.max *= factor;
    for (int i = 0; i < stats.turns; ++i) stats.turn[i].value *= factor;
    return stats;
}

int bench_turn(Stats* all, Stats one, int processes) {
    double placement;
    int again = bench_placement(processes, &placement), turns = all->turns;
    memcpy(one.turn, all->turn, sizeof one.turn);
    if (placement > 0 && turns < kMaxTurns) {
        one.turn[turns].value = one.value;
        one.turn[turns++].placement = placement;
    }
    *all = one;
    all->turns = turns;
    return again;
}

Stats bench_over_processes(MPI_Comm comm, double own) {
    Stats stats = {0};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    double* all = malloc((size_t)size * sizeof *all);
    MPI_Gather(&own, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, comm);
    if (rank == 0) stats = bench_stats(all, size);
    free(all);
    return stats;
}

Report* bench_report(const char* benchmark, const char* unit, const Options* options) {
    Report* report = calloc(1, sizeof *report);
    report->benchmark = benchmark;
    report->unit = unit;
    report->options = options;
    return report;
}

void bench_row(Report* report, const char* what, long size, Stats stats) {
    report->rows = realloc(report->rows, (size_t)(report->count + 1) * sizeof(Row));
    Row* row = &report->rows[report->count++];
    snprintf(row->what, sizeof row->what, "%s", what);
    row->size = size;
    row->stats = stats;
}

static void print_json(const Report* report, const char* ranks) {
    printf("{\"benchmark\": \"%s\", \"unit\": \"%s\", \"ranks\": \"%s\", \"rows\": [", report->benchmark, report->unit, ranks);
    for (int i = 0; i < report->count; ++i) {
        const Row* row = &report->rows[i];
        printf(
            "%s{\"what\": \"%s\", \"size\": %ld, \"value\": %.6g, \"min\": %.6g, \"mean\": %.6g, \"max\": "
            "%.6g, \"turns\": [",
            i ? ", " : "", row->what, row->size, row->stats.value, row->stats.min, row->stats.mean, row->stats.max);
        for (int k = 0; k < row->stats.turns; ++k)
            printf("%s[%.6g, %.6g]", k ? ", " : "", row->stats.turn[k].value, row->stats.turn[k].placement);
        printf("]}");
    }
    printf("]}\n");
}

static void print_table(const Report* report, const char* ranks) {
    printf("# %s, %s processes, %s\n", report->benchmark, ranks, report->unit);
    printf("# %-20s %10s %14s", "what", "size", "median");
    if (report->options->full) printf(" %14s %14s %14s", "min", "mean", "max");
    printf("\n");
    for (int i = 0; i < report->count; ++i) {
        const Row* row = &report->rows[i];
        printf("%-22s %10ld %14.3f", row->what[0] ? row->what : report->benchmark, row->size, row->stats.value);
        if (report->options->full) printf(" %14.3f %14.3f %14.3f", row->stats.min, row->stats.mean, row->stats.max);
        printf("\n");
    }
}

void bench_print(Report* report, const char* ranks, int prints) {
    if (prints && report->options->json) {
        print_json(report, ranks);
    } else if (prints) {
        print_table(report, ranks);
    }
    fflush(stdout);
    free(report->rows);
    free(report);
}

void bench_print_world(Report* report) {
    char ranks[16];
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(ranks, sizeof ranks, "%d", size);
    bench_print(report, ranks, rank == 0);
}
