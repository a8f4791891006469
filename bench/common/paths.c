#include "paths.h"

#include <stdlib.h>

/* Names of Starling's counters. */
static const char* const kCounters[] = {"messages_ring", "messages_tcp",   "messages_rc", "messages_inbox",
                                        "messages_udp",  "messages_verbs", "opened"};
enum { kRing, kTcp, kRc, kInbox, kUdp, kVerbs, kOpened, kAll };

struct Paths {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[kAll];
    int started, there[kAll];
};

static int begin(Paths* paths, int which) {
    int number, count;
    if (MPI_T_pvar_get_index(kCounters[which], MPI_T_PVAR_CLASS_COUNTER, &number) != MPI_SUCCESS || number < 0) return 0;
    if (MPI_T_pvar_handle_alloc(paths->session, number, NULL, &paths->handles[which], &count) != MPI_SUCCESS) return 0;
    return count == 1 && MPI_T_pvar_start(paths->session, paths->handles[which]) == MPI_SUCCESS;
}

Paths* bench_paths(void) {
    Paths* paths = calloc(1, sizeof *paths);
    int provided;
    paths->started = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS &&
                     MPI_T_pvar_session_create(&paths->session) == MPI_SUCCESS;
    for (int i = 0; paths->started && i < kAll; ++i) paths->there[i] = begin(paths, i);
    return paths;
}

PathShare bench_path_share(Paths* paths, MPI_Comm comm) {
    double mine[kAll], all[kAll] = {0};
    for (int i = 0; i < kAll; ++i) {
        unsigned long long own = 0;
        int known = paths->there[i] && MPI_T_pvar_read(paths->session, paths->handles[i], &own) == MPI_SUCCESS;
        mine[i] = known ? (double)own : -1;
    }
    MPI_Reduce(mine, all, kAll, MPI_DOUBLE, MPI_SUM, 0, comm);
    if (paths->started) {
        MPI_T_pvar_session_free(&paths->session);
        MPI_T_finalize();
    }
    free(paths);
    double connected = all[kRing] + all[kTcp] + all[kRc], packets = connected + all[kInbox] + all[kUdp] + all[kVerbs];
    return (PathShare){packets > 0 ? connected / packets : -1, all[kOpened] < 0 ? -1 : all[kOpened]};
}
