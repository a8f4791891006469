#include "team.h"

#include <stdio.h>

enum { kMaxBatches = 1000 };

Team bench_team(const Options* options, char** argv) {
    Team team = {MPI_COMM_WORLD, MPI_COMM_WORLD, 0, 0, 0, {0, 0}, 0, 0};
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        team.comm = parent;
        team.side = 1;
    } else if (options->children > 0) {
        MPI_Comm_spawn(argv[0], argv + 1, options->children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &team.comm, MPI_ERRCODES_IGNORE);
    }
    team.inter = team.comm != MPI_COMM_WORLD;
    MPI_Comm_rank(team.comm, &team.rank);
    MPI_Comm_size(team.comm, &team.size[team.side]);
    if (team.inter) {
        MPI_Comm_remote_size(team.comm, &team.size[1 - team.side]);
        MPI_Intercomm_merge(team.comm, team.side, &team.control);
    }
    MPI_Comm_rank(team.control, &team.id);
    MPI_Comm_size(team.control, &team.total);
    return team;
}

void bench_team_end(Team* team) {
    if (!team->inter) return;
    MPI_Comm_free(&team->control);
    MPI_Comm_disconnect(&team->comm);
}

void bench_team_print(const Team* team, Report* report) {
    char ranks[32];
    snprintf(ranks, sizeof ranks, team->inter ? "%d+%d" : "%d", team->size[0], team->size[1]);
    bench_print(report, ranks, team->id == 0);
}

/* Runs a batch and returns the seconds that this process needed for it. The process with id 0 determines the number of iterations. */
static double batch(const Team* team, TeamRound round, void* context, long iterations) {
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, team->control);
    MPI_Barrier(team->control);
    double before = bench_now();
    round(team, iterations, context);
    return bench_now() - before;
}

/* Returns the number of iterations that make a batch long enough, the same on all processes. A disturbance may make a batch longer, so the
 * time must be reached twice in a row. */
static long calibrate(const Team* team, const Options* options, TeamRound round, void* context) {
    double wanted = options->seconds / options->batches / 2;
    long iterations = 1;
    for (int reached = 0; reached < 2;) {
        double own = batch(team, round, context, iterations), longest;
        MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, team->control);
        if (longest < wanted) {
            iterations *= longest < wanted / 8 ? 4 : 2;
            reached = 0;
        } else {
            ++reached;
        }
    }
    return iterations;
}

static Stats measure(const Team* team, const Options* options, TeamRound round, void* context, double scale) {
    static double shortest[kMaxBatches], average[kMaxBatches], longest[kMaxBatches];
    int batches = options->batches < kMaxBatches ? options->batches : kMaxBatches;
    if (options->warm_up > 0) batch(team, round, context, options->iterations ? options->warm_up : 1);
    long iterations = options->iterations ? options->iterations : calibrate(team, options, round, context);
    for (int i = 0; i < batches; ++i) {
        double own = batch(team, round, context, iterations) / (double)iterations * scale;
        MPI_Reduce(&own, &shortest[i], 1, MPI_DOUBLE, MPI_MIN, 0, team->control);
        MPI_Reduce(&own, &average[i], 1, MPI_DOUBLE, MPI_SUM, 0, team->control);
        MPI_Reduce(&own, &longest[i], 1, MPI_DOUBLE, MPI_MAX, 0, team->control);
        average[i] /= team->total;
    }
    Stats stats = bench_stats(longest, batches);
    stats.max = stats.value;
    stats.min = bench_stats(shortest, batches).value;
    stats.mean = bench_stats(average, batches).value;
    return stats;
}

Stats bench_team_measure(const Team* team, const Options* options, TeamRound round, void* context, double scale) {
    static int placed;
    Stats all = {0}, one = {0};
    if (!placed++) bench_turn(&all, one, team->total);
    do { one = measure(team, options, round, context, scale); } while (bench_turn(&all, one, team->total));
    return all;
}
