// One rank revokes a communicator while the others wait in a call on it: every pending and later call on it returns MPIX_ERR_REVOKED, and
// other communicators still work. No rank dies.
#include <mpi-ext.h>

#include "check.h"

enum { kLong = 1 << 20 };

static int rank, size;
static char bytes[kLong];

/// Waits in a call that cannot complete, because rank 0 does not take part. Returns its error.
static int wait_in(int what, MPI_Comm comm) {
    int value = 0, flag;
    MPI_Request request;
    MPI_Status status;
    switch (what) {
        case 0:
            return MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
        case 1:
            return MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
        case 2:
            return MPI_Barrier(comm);
        case 3:
            return MPI_Bcast(bytes, kLong, MPI_BYTE, 0, comm);
        case 4:
            OK(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm, &request));
            return MPI_Wait(&request, &status);
        case 5:
            OK(MPI_Irecv(&value, 1, MPI_INT, 0, 3, comm, &request));
            return MPI_Wait(&request, &status);
        case 6:
            return MPI_Ssend(bytes, kLong, MPI_BYTE, 0, 2, comm);
        case 7:
            return MPI_Probe(0, 7, comm, &status);
        case 8:
            return MPI_Comm_dup(comm, &(MPI_Comm){MPI_COMM_NULL});
        case 9:
            OK(MPI_Issend(bytes, 4, MPI_BYTE, 0, 2, comm, &request));
            return MPI_Wait(&request, &status);
        case 10:
            OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &request));
            do {
                const int code = MPI_Test(&request, &flag, &status);
                if (code) return code;
            } while (!flag);
            return MPI_SUCCESS;
        default:
            return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, 64, MPI_BYTE, comm);
    }
}
enum { kCalls = 12 };

static void expect_revoked(int code, int what) {
    CHECK(class_of(code) == MPIX_ERR_REVOKED, "call %d gave class %d", what, class_of(code));
}

/// Every call that is not local fails on a revoked communicator.
static void try_all(MPI_Comm comm) {
    int flag = 0, value = 0;
    MPI_Request request;
    MPI_Comm made;
    MPI_Group group;
    for (int what = 0; what < kCalls; ++what) {
        if (what != 4 && what != 5 && what != 9 && what != 10) expect_revoked(wait_in(what, comm), what);
    }
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &request));
    expect_revoked(MPI_Wait(&request, MPI_STATUS_IGNORE), 20);
    OK(MPI_Ibarrier(comm, &request));
    expect_revoked(MPI_Wait(&request, MPI_STATUS_IGNORE), 21);
    expect_revoked(MPI_Send(&value, 1, MPI_INT, size - 1, 4, comm), 22);
    expect_revoked(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 4, comm), 29);
    expect_revoked(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 4, comm, MPI_STATUS_IGNORE), 30);
    expect_revoked(MPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &flag, MPI_STATUS_IGNORE), 23);
    expect_revoked(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm), 24);
    expect_revoked(MPI_Gather(&value, 1, MPI_INT, bytes, 1, MPI_INT, 0, comm), 25);
    expect_revoked(MPI_Scan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm), 26);
    expect_revoked(MPI_Comm_split(comm, 0, 0, &made), 27);
    OK(MPI_Comm_group(comm, &group));
    expect_revoked(MPI_Comm_create_group(comm, group, 5, &made), 28);
    OK(MPI_Group_free(&group));
    OK(MPIX_Comm_is_revoked(comm, &flag));
    EXPECT_INT(flag, 1);
}

/// A communicator of one process is revoked, too.
static void revoke_alone(void) {
    MPI_Comm alone;
    int value = 0;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &alone));
    OK(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3 * (rank % 2); ++i) OK(MPI_Barrier(alone));
    OK(MPIX_Comm_revoke(alone));
    expect_revoked(MPI_Barrier(alone), 50);
    expect_revoked(MPI_Bcast(&value, 1, MPI_INT, 0, alone), 51);
    expect_revoked(MPI_Sendrecv(&value, 0, MPI_INT, 0, 1, &value, 0, MPI_INT, 0, 1, alone, MPI_STATUS_IGNORE), 52);
    expect_revoked(MPI_Comm_dup(alone, &(MPI_Comm){MPI_COMM_NULL}), 53);
    expect_revoked(MPI_Comm_split(alone, 0, 0, &(MPI_Comm){MPI_COMM_NULL}), 54);
    OK(MPI_Comm_free(&alone));
}

/// A combined operation whose receive has completed fails with its revoked send. One that was freed before ends without a trace.
static void revoke_send_receive(int freed) {
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 0, flag = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (rank == 0) {
        for (int r = 1; r < size; ++r) OK(MPI_Send(&rank, 1, MPI_INT, r, 7, comm));
    } else {
        value = -1;
        OK(MPI_Isendrecv(bytes, kLong, MPI_BYTE, 0, 6, &value, 1, MPI_INT, 0, 7, comm, &request));
        while (*(volatile int*)&value) OK(MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (freed) OK(MPI_Request_free(&request));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPIX_Comm_revoke(comm));
    while (!flag) OK(MPIX_Comm_is_revoked(comm, &flag));
    if (rank > 0 && !freed) expect_revoked(MPI_Wait(&request, MPI_STATUS_IGNORE), 60);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    revoke_alone();
    revoke_send_receive(0);
    revoke_send_receive(1);
    for (int what = 0; what < kCalls; ++what) {
        MPI_Comm comm, living;
        MPI_Request plan;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &plan));
        int flag = 1, value = 1, same;
        for (int i = 0; i < what % 4; ++i) OK(MPI_Barrier(comm));
        OK(MPIX_Comm_is_revoked(comm, &flag));
        EXPECT_INT(flag, 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) {
            if (what % 2) OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPIX_Comm_revoke(comm));
        } else {
            if (what % 2 && rank == size - 1) OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
            expect_revoked(wait_in(what, comm), what);
        }
        try_all(comm);
        OK(MPI_Start(&plan));
        expect_revoked(MPI_Wait(&plan, MPI_STATUS_IGNORE), 40);
        OK(MPI_Request_free(&plan));
        flag = ~(1 << rank % 30);
        OK(MPIX_Comm_agree(comm, &flag));
        for (int r = 0; r < size; ++r) EXPECT_INT(flag >> r % 30 & 1, 0);
        OK(MPIX_Comm_shrink(comm, &living));
        OK(MPI_Comm_compare(comm, living, &same));
        EXPECT_INT(same, MPI_CONGRUENT);
        OK(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, living));
        EXPECT_INT(value, size);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_free(&living));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("every call was revoked");
    OK(MPI_Finalize());
    return 0;
}
