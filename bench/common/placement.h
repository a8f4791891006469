/* Where the cores are just now. On a virtual machine that changes within seconds, and a value means
 * nothing unless it held while the value was measured. So the runner (compare) is asked before and after
 * each value, through the socket that BENCH_PLACEMENT names; without that variable nothing happens. Needs
 * no MPI. */
#ifndef BENCH_PLACEMENT_H
#define BENCH_PLACEMENT_H

/* Called by each of so many processes after each value, and once before the first. All sleep while the
 * runner looks: nobody spins on a core that is being looked at. Returns 1 if the value is to be measured
 * again, the same on all of them. *placement is half a round trip of a cache line between the cores that
 * they ran on, in ns; 0 if that is not known. */
int bench_placement(int processes, double* placement);

#endif
