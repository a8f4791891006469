// Reads some of this process's Starling counters, counted since start_counters().
#pragma once

#include <mpi.h>

enum { kPeersMet, kPesAccessed, kOpened, kRing, kInbox, kUdp, kTcp, kPuts, kGets, kUpdates, kCounters };
static const char* const kCounterNames[] = {"peers_met",    "pes_accessed", "opened", "messages_ring", "messages_inbox",
                                            "messages_udp", "messages_tcp", "puts",   "gets",          "updates"};
static MPI_T_pvar_session counter_session;
static MPI_T_pvar_handle counter_handles[kCounters];

/// Starts the counters; call it before shmem_init. Returns 0 if a counter does not exist.
static int start_counters(void) {
    int provided, index, count;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return 0;
    MPI_T_pvar_session_create(&counter_session);
    for (int i = 0; i < kCounters; i++) {
        if (MPI_T_pvar_get_index(kCounterNames[i], MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) return 0;
        MPI_T_pvar_handle_alloc(counter_session, index, NULL, &counter_handles[i], &count);
        MPI_T_pvar_start(counter_session, counter_handles[i]);
    }
    return 1;
}

static long counter(int which) {
    unsigned long long value = 0;
    return MPI_T_pvar_read(counter_session, counter_handles[which], &value) == MPI_SUCCESS ? (long)value : -1;
}
