// Messages and collectives of one communicator must be invisible to all others, even with equal tags and ranks.
#include "check.h"

enum { kComms = 6 };

int main(int argc, char** argv) {
    int rank, size, flag, value;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_Comm comms[kComms];
    MPI_Request sends[kComms];
    MPI_Status status;
    int out[kComms], to = (rank + 1) % size, from = (rank + size - 1) % size;
    comms[0] = MPI_COMM_WORLD;
    for (int i = 1; i < kComms; i++) {
        if (i % 2)
            OK(MPI_Comm_dup(comms[i - 1], &comms[i]));
        else
            OK(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[i]));
    }
    for (int i = 0; i < kComms; i++) {
        out[i] = rank * 10 + i;
        OK(MPI_Isend(&out[i], 1, MPI_INT, to, 5, comms[i], &sends[i]));
    }
    // A collective on each communicator while messages for wildcard receives are pending: they must not be mixed up.
    for (int i = 0; i < kComms; i++) {
        value = rank;
        OK(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comms[i]));
        EXPECT_INT(value, size * (size - 1) / 2);
    }
    for (int i = kComms - 1; i >= 0; i--) {
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &status));
        EXPECT_INT(value, from * 10 + i);
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &flag, MPI_STATUS_IGNORE));
        EXPECT_INT(flag, 0);
    }
    OK(MPI_Waitall(kComms, sends, MPI_STATUSES_IGNORE));

    // A posted wildcard receive must not match the collectives' messages.
    MPI_Request wildcard;
    value = -1;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[1], &wildcard));
    for (int i = 0; i < 20; i++) {
        int sum = rank, root = rank;
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comms[1]));
        EXPECT_INT(sum, size * (size - 1) / 2);
        OK(MPI_Bcast(&root, 1, MPI_INT, i % size, comms[1]));
        MPI_Comm extra;
        OK(MPI_Comm_dup(comms[1], &extra));
        OK(MPI_Comm_free(&extra));
        EXPECT_INT(value, -1);  // the receive is unmatched: no rank sends before the last barrier
        OK(MPI_Barrier(comms[1]));
    }
    OK(MPI_Send(&rank, 1, MPI_INT, to, 1, comms[1]));
    OK(MPI_Wait(&wildcard, MPI_STATUS_IGNORE));
    EXPECT_INT(value, from);
    for (int i = 1; i < kComms; i++) OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Finalize());
    return 0;
}
