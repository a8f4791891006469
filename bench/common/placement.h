/* Tracks the current placement of the cores. On a virtual machine the placement changes within seconds, and a value is meaningless if it
 * changed during the measurement. So the program asks the runner (compare) before and after each value, through the socket in
 * BENCH_PLACEMENT; without that variable nothing happens. Needs no MPI. */
#ifndef BENCH_PLACEMENT_H
#define BENCH_PLACEMENT_H

/* Each of `processes` processes must call it after each value, and once before the first. All of them sleep until the runner has checked
 * the cores and it is this program's turn. So no process spins on a core on which another program measures. Returns 1, on all processes, if
 * the value must be measured again. *placement is half a round trip of a cache line between the cores that the processes ran on, in ns. It
 * is 0 if this turn does not count because the cores have moved. */
int bench_placement(int processes, double* placement);

#endif
