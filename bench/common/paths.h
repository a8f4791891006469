/* Counts the paths that a library's packets take, if it reports them by MPI_T. Plain C and MPI. */
#ifndef BENCH_PATHS_H
#define BENCH_PATHS_H

#include <mpi.h>

typedef struct Paths Paths;

typedef struct {
    double on_connections; /* share of all processes' packets that used connections; -1: unknown */
    double opened;         /* connections opened, both ends counted; -1: unknown */
} PathShare;

/* Starts counting in this process. */
Paths* bench_paths(void);
/* Returns the counts of all processes of a communicator since bench_paths(), valid on rank 0. Frees `paths`. */
PathShare bench_path_share(Paths* paths, MPI_Comm comm);

#endif
