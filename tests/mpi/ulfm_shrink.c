// Ranks die one after the other at random moments while all use a communicator. The others revoke it, agree, and shrink it, until one is
// left. Each survivor gets the same flags and the same groups. Usage: ulfm_shrink SEED
#include <mpi-ext.h>

#include "death.h"

static int rank, size;
static uint64_t state;

static void expect_failure(int code, const char* what) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    const int class = class_of(code);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "%s: %s", what, text);
}

/// Communicates until a call fails.
static void work(MPI_Comm comm) {
    int me, n, code = MPI_SUCCESS;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    for (int i = 0; !code; ++i) {
        int value = me, sum = 0;
        MPI_Request request;
        switch (i % 4) {
            case 0:
                code = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
                if (!code) EXPECT_INT(sum, n * (n - 1) / 2);
                break;
            case 1:
                code = MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 1, &value, 1, MPI_INT, (me + n - 1) % n, 1, comm,
                                    MPI_STATUS_IGNORE);
                break;
            case 2:
                OK(MPI_Ibarrier(comm, &request));
                code = MPI_Wait(&request, MPI_STATUS_IGNORE);
                break;
            default:
                code = MPI_Bcast(&value, 1, MPI_INT, i % n, comm);
        }
    }
    expect_failure(code, "a call with a failed member");
}

/// Checks that all members of `comm` have the same value.
static void expect_same(int value, MPI_Comm comm) {
    int least, most;
    OK(MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, comm));
    OK(MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, comm));
    EXPECT_INT(least, most);
}

/// Acknowledges failures until an agreement succeeds. Returns how many it took, which is the same on all members.
static int agree_when_acknowledged(MPI_Comm comm) {
    for (int tries = 1;; ++tries) {
        MPI_Group failed, acknowledged;
        int known, acked, one = 1;
        OK(MPIX_Comm_failure_ack(comm));
        OK(MPIX_Comm_failure_get_acked(comm, &acknowledged));
        OK(MPIX_Comm_get_failed(comm, &failed));
        OK(MPI_Group_size(failed, &known));
        OK(MPI_Group_size(acknowledged, &acked));
        CHECK(acked <= known, "%d failures are acknowledged, %d are known", acked, known);
        OK(MPI_Group_free(&failed));
        OK(MPI_Group_free(&acknowledged));
        const int code = MPIX_Comm_agree(comm, &one);
        EXPECT_INT(one, 1);
        if (!code) return tries;
        EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
    }
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 2, "usage: mpiexec --enable-recovery -n N ulfm_shrink SEED");
    test_seed = strtoull(argv[1], NULL, 10);
    int *ft = NULL, is_set = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &ft, &is_set));
    CHECK(is_set && *ft == 1, "MPIX_FT is not set in a job with --enable-recovery");
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int n = size, rounds = 0;
    while (n > 1) {
        state = test_seed * 1000 + (uint64_t)++rounds;
        const int doomed = (int)(next_random(&state) % (uint64_t)n);
        const unsigned within = rounds % 3 ? 300 : 5000;
        int me;
        OK(MPI_Comm_rank(comm, &me));
        // No other rank waits for the doomed one any more when it has these messages.
        for (int r = 0; me == doomed && r < n - 1; ++r)
            OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 7, comm, MPI_STATUS_IGNORE));
        if (me != doomed) OK(MPI_Send(NULL, 0, MPI_INT, doomed, 7, comm));
        if (me == doomed) die_within(&state, within);
        work(comm);
        OK(MPIX_Comm_revoke(comm));
        int flag = ~(1 << rank % 30);
        const int code = MPIX_Comm_agree(comm, &flag);
        EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
        MPI_Comm living;
        OK(MPIX_Comm_shrink(comm, &living));
        int now;
        OK(MPI_Comm_size(living, &now));
        EXPECT_INT(now, n - 1);
        expect_same(flag, living);
        expect_same(agree_when_acknowledged(comm), living);
        OK(MPI_Comm_free(&comm));
        comm = living;
        n = now;
    }
    printf("one is left after %d rounds\n", rounds);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
