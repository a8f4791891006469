// Ranks die and are replaced, twice in a row: the new communicators have the old size, every survivor has its old rank in them, and the
// substitutes have the ranks of the dead. The second round may kill substitutes of the first.
// Usage: replace FIRST SECOND, each a list of ranks such as 0,2 or - (nobody dies).
#include <mpi-ext.h>
#include <string.h>

#include "death.h"
#include "dynamic.h"

enum { kMost = 32, kRounds = 2 };

static int round_number;  // rounds whose deaths have been replaced

/// Reads a list of ranks, and returns how many it has.
static int read_ranks(const char* list, int ranks[kMost]) {
    int count = 0;
    for (const char* at = list; *at && *at != '-' && count < kMost; at += strcspn(at, ","), at += *at == ',')
        ranks[count++] = atoi(at);
    return count;
}

static int contains(const int* ranks, int count, int rank) {
    for (int i = 0; i < count; ++i)
        if (ranks[i] == rank) return 1;
    return 0;
}

/// The doomed ranks die when no rank waits for them any more; the others return when they have noticed all deaths.
static void lose(MPI_Comm comm, const int* doomed, int count) {
    kill_all_when_ready(comm, doomed, count);
    for (int i = 0; i < count; ++i)
        EXPECT_INT(class_of(MPI_Recv(NULL, 0, MPI_BYTE, doomed[i], 8, comm, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
}

/// Checks the communicator by messages: all members are there, in the order of their ranks.
static void use(MPI_Comm comm, int size) {
    int me, n, got, sum, all[kMost];
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    EXPECT_INT(n, size);
    OK(MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 1, &got, 1, MPI_INT, (me + n - 1) % n, 1, comm, MPI_STATUS_IGNORE));
    EXPECT_INT(got, (me + n - 1) % n);
    OK(MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, comm));
    for (int i = 0; i < n; ++i) EXPECT_INT(all[i], i);
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm));
    EXPECT_INT(sum, n * (n - 1) / 2);
    // Substitutes learn here how far the others are.
    OK(MPI_Allreduce(MPI_IN_PLACE, &round_number, 1, MPI_INT, MPI_MAX, comm));
}

int main(int argc, char** argv) {
    MPI_Comm comm, parent, made;
    int me, size, now;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 3 || argc == 4, "usage: replace FIRST SECOND");
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        OK(MPI_Comm_size(comm, &size));
    } else {
        size = atoi(argv[3]);
        OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
        OK(MPIX_Comm_replace(MPI_COMM_NULL, NULL, MPI_ARGV_NULL, MPI_INFO_NULL, &comm));
        OK(MPI_Comm_get_parent(&parent));
        CHECK(parent == MPI_COMM_NULL, "the communicator with the parents was not freed");
        use(comm, size);
        OK(MPI_Comm_rank(comm, &me));
        int ranks[kMost];
        const int count = read_ranks(argv[round_number], ranks);
        CHECK(contains(ranks, count, me), "a substitute got rank %d, whose process has not died", me);
    }
    char text[16];
    snprintf(text, sizeof text, "%d", size);
    char* arguments[] = {argv[1], argv[2], text, NULL};
    while (round_number < kRounds) {
        int doomed[kMost];
        const int count = read_ranks(argv[round_number + 1], doomed);
        OK(MPI_Comm_rank(comm, &me));
        lose(comm, doomed, count);
        OK(MPIX_Comm_replace(comm, own_path(), arguments, MPI_INFO_NULL, &made));
        OK(MPI_Comm_free(&comm));
        comm = made;
        OK(MPI_Comm_rank(comm, &now));
        EXPECT_INT(now, me);
        ++round_number;
        use(comm, size);
    }
    OK(MPI_Comm_rank(comm, &me));
    if (me == 0) printf("all %d ranks are there again\n", size);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
