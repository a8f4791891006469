// Ranks die at random moments while all agree again and again, with blocking and non-blocking calls. All living ranks get the same flags and
// the same error classes from each agreement. Usage: ulfm_agree SEED
#include <mpi-ext.h>

#include "death.h"

enum { kAgreements = 1500, kMost = 16 };

/// The results of one rank's agreements, in memory that all share.
struct Log {
    int flags[kAgreements], classes[kAgreements];
};

static int rank, size;

static int flag_of(int member, int number) { return ~(1 << (member + number) % 31); }

static int flag_of_all(int number) {
    int all = ~0;
    for (int m = 0; m < size; ++m) all &= flag_of(m, number);
    return all;
}

/// Starts up to three agreements at once, or makes one call that blocks. Returns the number of agreements.
static int agree_some(MPI_Comm comm, int number, uint64_t* state, struct Log* log) {
    const int left = kAgreements - number, wanted = 1 + number / 10 % 3, count = wanted < left ? wanted : left;
    MPI_Request requests[3];
    int* flags = &log->flags[number];
    for (int i = 0; i < count; ++i) flags[i] = flag_of(rank, number + i);
    if (count == 1) {
        log->classes[number] = class_of(MPIX_Comm_agree(comm, flags));
        return 1;
    }
    for (int i = 0; i < count; ++i) OK(MPIX_Comm_iagree(comm, &flags[i], &requests[i]));
    // In any order: the calls are ordered, not the waits.
    const int first = (int)(next_random(state) % (uint64_t)count);
    for (int i = 0; i < count; ++i) {
        const int which = (first + i) % count;
        log->classes[number + which] = class_of(MPI_Wait(&requests[which], MPI_STATUS_IGNORE));
    }
    return count;
}

static void expect_own_results(const struct Log* log) {
    for (int k = 0; k < kAgreements; ++k) {
        CHECK(log->classes[k] == MPI_SUCCESS || log->classes[k] == MPIX_ERR_PROC_FAILED, "agreement %d: class %d", k,
              log->classes[k]);
        CHECK(!(log->flags[k] & ~flag_of(rank, k)), "agreement %d lacks the vote of rank %d: %x", k, rank,
              (unsigned)log->flags[k]);
        if (log->classes[k] == MPI_SUCCESS) EXPECT_INT(log->flags[k], flag_of_all(k));
    }
}

/// Compares the results with those of the lowest living rank; returns false if a rank dies meanwhile.
static int compare(MPI_Comm living, const struct Log* log) {
    struct Log lowest = *log;
    int all_have_it = MPI_Bcast(&lowest, 2 * kAgreements, MPI_INT, 0, living) == MPI_SUCCESS;
    if (MPIX_Comm_agree(living, &all_have_it) != MPI_SUCCESS || !all_have_it) return 0;
    for (int k = 0; k < kAgreements; ++k) {
        EXPECT_INT(log->flags[k], lowest.flags[k]);
        EXPECT_INT(log->classes[k], lowest.classes[k]);
    }
    return 1;
}

int main(int argc, char** argv) {
    static struct Log log;
    MPI_Comm comm, living;
    int members;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 2 && size <= kMost, "usage: mpiexec --enable-recovery -n N ulfm_agree SEED");
    test_seed = strtoull(argv[1], NULL, 10);
    uint64_t state = test_seed * 1000 + (uint64_t)rank;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int k = 0; k < kAgreements;) {
        const int was_first = k == 0;
        k += agree_some(comm, k, &state, &log);
        // All ranks have left MPI_Comm_dup when the first agreement ends. About half of them die, but the last one lives.
        if (was_first && rank != size - 1 && (next_random(&state) >> 20) % 2) die_within(&state, 20000);
    }
    expect_own_results(&log);
    for (int is_same = 0; !is_same;) {
        OK(MPIX_Comm_shrink(comm, &living));
        OK(MPI_Comm_size(living, &members));
        is_same = compare(living, &log);
        OK(MPI_Comm_free(&living));
    }
    if (rank == size - 1) printf("the living agreed: %d of %d\n", members, size);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
