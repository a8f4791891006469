/* The processes of a collective benchmark: one job, or parents and spawned children on an inter-communicator. */
#ifndef TEAM_H
#define TEAM_H

#include "bench.h"

typedef struct {
    MPI_Comm comm;    /* communicator to measure: MPI_COMM_WORLD or the inter-communicator */
    MPI_Comm control; /* all processes, to coordinate and gather times; parents come first */
    int inter;        /* whether comm is an inter-communicator */
    int side;         /* side of this process: 0: parent (or the only side), 1: child */
    int rank;         /* rank in comm, within this process's side */
    int size[2];      /* processes of side 0 and side 1 (0 if there is none) */
    int id;           /* rank of this process in control */
    int total;
} Team;

Team bench_team(const Options* options, char** argv);
void bench_team_end(Team* team);

/* Prints the report on id 0, with "16" or "1+7" as the number of processes; frees the report on all processes. */
void bench_team_print(const Team* team, Report* report);

/* Runs one batch of a measurement; every process calls it. */
typedef void (*TeamRound)(const Team* team, long iterations, void* context);

/* Measures seconds per iteration times scale. The value is that of the slowest process; minimum, mean and maximum are over the processes;
 * each is the median over the batches. Valid on id 0. */
Stats bench_team_measure(const Team* team, const Options* options, TeamRound round, void* context, double scale);

#endif
