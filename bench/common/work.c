#include "bench.h"

/* Volatile, so that no compiler computes the result in advance. */
static volatile double start = 0.5, sink;

void bench_compute(long units) {
    double x = start;
    for (long i = 0; i < units * 250; ++i) x = x * 0.999999 + 1e-6;
    sink = x;
}

/* Returns the seconds of one unit: the shortest of several tries, which was not interrupted. */
static double measure_unit(void) {
    enum { kUnits = 200, kTries = 25 };
    double shortest = 1;
    for (int i = 0; i < kTries; ++i) {
        double before = bench_now();
        bench_compute(kUnits);
        double one = (bench_now() - before) / kUnits;
        if (one < shortest) shortest = one;
    }
    return shortest;
}

long bench_units(double microseconds) {
    static double unit;
    if (unit == 0) unit = measure_unit();
    return (long)(microseconds * 1e-6 / unit);
}
