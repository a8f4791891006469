/* Two ranks repeat long broadcasts, all-gathers and all-to-alls so often that the library compares its ways of moving the data and changes
 * between them. Every call has other data; roots alternate irregularly, and one rank sometimes comes late. */
#include "check.h"

enum { kCalls = 1400, kWords = 5000, kMost = 2 * kWords };

static int word(int call, int from, int at) { return call * 100003 + from * 50021 + at; }

static void check_block(const int* block, int call, int from, int offset, const char* what) {
    for (int i = 0; i < kWords; i += call % 16 == 0 ? 1 : 97)
        CHECK(block[i] == word(call, from, offset + i), "%s, call %d: word %d from %d is %d and not %d", what, call, i, from, block[i],
              word(call, from, offset + i));
}

int main(int argc, char** argv) {
    static int out[kMost], in[kMost];
    int rank, size;
    MPI_Comm pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    MPI_Comm_rank(pair, &rank);
    MPI_Comm_size(pair, &size);
    CHECK(size == 2, "needs 2 ranks, has %d", size);
    for (int call = 0; call < kCalls; ++call) {
        const int root = call * 7 / 3 % 2;
        for (int i = 0; i < kMost; ++i) {
            out[i] = word(call, rank, i);
            in[i] = -1;
        }
        if (call % 61 == rank)
            for (double until = MPI_Wtime() + 1e-4; MPI_Wtime() < until;) {}
        MPI_Bcast(rank == root ? out : in, kWords, MPI_INT, root, pair);
        check_block(rank == root ? out : in, call, root, 0, "broadcast");
        MPI_Allgather(out, kWords, MPI_INT, in, kWords, MPI_INT, pair);
        for (int from = 0; from < 2; ++from) check_block(in + from * kWords, call, from, 0, "all-gather");
        memcpy(in + rank * kWords, out, sizeof(int) * kWords);
        memset(in + (1 - rank) * kWords, 0, sizeof(int) * kWords);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, kWords, MPI_INT, pair);
        for (int from = 0; from < 2; ++from) check_block(in + from * kWords, call, from, 0, "all-gather in place");
        MPI_Alltoall(out, kWords, MPI_INT, in, kWords, MPI_INT, pair);
        for (int from = 0; from < 2; ++from) check_block(in + from * kWords, call, from, rank * kWords, "all-to-all");
    }
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return 0;
}
