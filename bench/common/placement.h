/* Where the cores are just now. On a virtual machine that changes within seconds, and a value means
 * nothing unless it held while the value was measured. So the runner (compare) is asked before and after
 * each value, through the socket that BENCH_PLACEMENT names; without that variable nothing happens. Needs
 * no MPI. */
#ifndef BENCH_PLACEMENT_H
#define BENCH_PLACEMENT_H

/* Called by each of so many processes after each value, and once before the first. All sleep until the
 * runner has looked, and until it is this program's turn: nobody spins on a core that others measure with.
 * Returns 1 if another turn of the value is to be measured, the same on all of them. *placement is half a
 * round trip of a cache line between the cores that they ran on, in ns; 0 if this turn does not count, as
 * the cores have moved. */
int bench_placement(int processes, double* placement);

#endif
