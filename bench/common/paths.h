/* By which paths a library has sent, where it tells by MPI_T. Plain C and MPI. */
#ifndef BENCH_PATHS_H
#define BENCH_PATHS_H

#include <mpi.h>

typedef struct Paths Paths;

typedef struct {
    double
        on_connections; /* share of the packets of all processes that went on connections; -1 where the library does not tell */
    double opened;      /* connections opened, both ends counted; -1 likewise */
} PathShare;

/* Begins to count in this process. */
Paths* bench_paths(void);
/* What was counted since then by all processes of a communicator: valid on rank 0. Frees. */
PathShare bench_path_share(Paths* paths, MPI_Comm comm);

#endif
