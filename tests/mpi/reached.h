// Exercises every mechanism by which processes access each other's memory, for tests in which the kernel forbids direct access.
#pragma once

#include "check.h"

/// Sends messages of all sizes: eager ones, fragmented ones, and ones that a single copy by the kernel would transfer.
__attribute__((unused)) static void reach_by_messages(MPI_Comm comm) {
    int rank, size;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int bytes = 8; bytes <= 4 << 20; bytes *= 8) {
        char *out = malloc((size_t)bytes), *in = calloc((size_t)bytes, 1);
        CHECK(out && in, "malloc");
        memset(out, rank + 1, (size_t)bytes);
        OK(MPI_Sendrecv(out, bytes, MPI_CHAR, next, 0, in, bytes, MPI_CHAR, before, 0, comm, MPI_STATUS_IGNORE));
        EXPECT_INT(in[0], before + 1);
        EXPECT_INT(in[bytes - 1], before + 1);
        free(out);
        free(in);
    }
    int one = 1, all = 0;
    OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm));
    EXPECT_INT(all, size);
}

/// Creates windows repeatedly, of the kinds that processes on a host map; shared windows only if all processes are on one host.
__attribute__((unused)) static void reach_by_windows(MPI_Comm comm, int turns) {
    enum { kBytes = 4096 };
    int rank, size, here;
    MPI_Comm host;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &here));
    OK(MPI_Comm_free(&host));
    const int next = (rank + 1) % size, before = (rank + size - 1) % size, kinds = here == size ? 3 : 2;
    for (int turn = 0; turn < turns; turn++) {
        for (int kind = 0; kind < kinds; kind++) {
            char *memory = NULL, word = (char)(rank + turn + 1);
            MPI_Win window;
            if (kind == 0) {
                OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory));
                OK(MPI_Win_create(memory, kBytes, 1, MPI_INFO_NULL, comm, &window));
            } else if (kind == 1) {
                OK(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, comm, &memory, &window));
            } else {
                OK(MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, comm, &memory, &window));
            }
            OK(MPI_Win_fence(0, window));
            OK(MPI_Put(&word, 1, MPI_CHAR, next, kBytes - 1, 1, MPI_CHAR, window));
            OK(MPI_Win_fence(0, window));
            EXPECT_INT(memory[kBytes - 1], before + turn + 1);
            OK(MPI_Win_free(&window));
            if (kind == 0) OK(MPI_Free_mem(memory));
        }
    }
}

/// Runs reach_by_messages() and reach_by_windows() among parents and spawned children. Parents pass the inter-communicator to their
/// children, children pass MPI_COMM_NULL.
__attribute__((unused)) static void reach_family(MPI_Comm children) {
    MPI_Comm family = children, all;
    if (children == MPI_COMM_NULL) OK(MPI_Comm_get_parent(&family));
    OK(MPI_Intercomm_merge(family, children == MPI_COMM_NULL, &all));
    reach_by_messages(all);
    reach_by_windows(all, 2);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(&family));
}
