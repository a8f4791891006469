// Hundreds of communicators agree one after the other, more than there are slots for agreements in memory. The agreements need no packets,
// since the slots of freed communicators are used again.
#include <mpi-ext.h>

#include "check.h"

enum { kCommunicators = 400, kAgreements = 3 };

static MPI_T_pvar_session session;

/// Begins to count with one of this process's counters.
static MPI_T_pvar_handle start_counter(const char* name) {
    MPI_T_pvar_handle handle;
    int index, count;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static unsigned long long read_counter(MPI_T_pvar_handle handle) {
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static void agree(MPI_Comm comm, int rank, int size, int number) {
    int flag = ~(1 << (rank + number) % 16), all = ~0;
    for (int r = 0; r < size; ++r) all &= ~(1 << (r + number) % 16);
    OK(MPIX_Comm_agree(comm, &flag));
    EXPECT_INT(flag, all);
}

int main(int argc, char** argv) {
    int rank, size, provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle ring = start_counter("messages_ring"), inbox = start_counter("messages_inbox");
    unsigned long long packets = 0;
    for (int c = 0; c < kCommunicators; ++c) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        const unsigned long long before = read_counter(ring) + read_counter(inbox);
        for (int k = 0; k < kAgreements; ++k) agree(comm, rank, size, c + k);
        packets += read_counter(ring) + read_counter(inbox) - before;
        OK(MPI_Comm_free(&comm));
    }
    // By messages each rank sends at least one packet per agreement.
    CHECK(packets < kCommunicators * kAgreements / 10, "rank %d sent %llu packets in %d agreements", rank, packets,
          kCommunicators * kAgreements);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) printf("all agreed in memory\n");
    OK(MPI_Finalize());
    return 0;
}
