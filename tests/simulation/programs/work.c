/* Computing of the benchmarks in the simulator, in place of bench/common/work.c: a loop of instructions would take no simulated time. */
#include "bench.h"

/* Lets the calling rank compute for a simulated time (tests/simulation/system.cpp). */
void starling_simulated_compute(unsigned long ns);

enum { kUnitsPerMicrosecond = 1000 };

void bench_compute(long units) { starling_simulated_compute((unsigned long)units); }

long bench_units(double microseconds) { return (long)(microseconds * kUnitsPerMicrosecond); }
