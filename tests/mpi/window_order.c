/* A get after a flush must not return data older than the put before the flush. Two ranks put a number into each other's memory, flush, and
 * get the number from their own: at least one must see the other's. The accesses are so close that a processor which reorders loads before
 * stores would fail. TEST_ROUNDS: fewer rounds, for accesses over the network. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostRounds = 30000, kApart = 8, kTurn = 8 * kMostRounds };

static MPI_Win win;
static int me, other;

static void put(long what, long at) { MPI_Put(&what, 1, MPI_LONG, other, at, 1, MPI_LONG, win); }

static long get_own(long at) {
    long found = -1;
    MPI_Get(&found, 1, MPI_LONG, me, at, 1, MPI_LONG, win);
    MPI_Win_flush(me, win);
    return found;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    other = 1 - me;
    const char* const fewer = getenv("TEST_ROUNDS");
    const int rounds = fewer ? atoi(fewer) : kMostRounds;
    long* memory;
    MPI_Win_allocate((kTurn + kApart) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (long i = 0; i < kTurn + kApart; ++i) memory[i] = 0;
    char* missed = calloc(rounds, 1);
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned random = 7 + (unsigned)me;
    for (long round = 0; round < rounds; ++round) {
        put(round + 1, kTurn);
        MPI_Win_flush(other, win);
        while (get_own(kTurn) <= round) {}
        random = random * 1103515245 + 12345;
        for (volatile unsigned wait = random >> 16 & 63; wait > 0; --wait) {}
        put(1, kApart * round);
        MPI_Win_flush(other, win);
        missed[round] = get_own(kApart * round) == 0;
    }
    MPI_Win_unlock_all(win);
    char* missed_there = malloc(rounds);
    MPI_Sendrecv(missed, rounds, MPI_CHAR, other, 0, missed_there, rounds, MPI_CHAR, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    int both = 0;
    for (long round = 0; round < rounds; ++round) both += missed[round] && missed_there[round];
    if (both) fprintf(stderr, "in %d of %d rounds both got what was there before\n", both, rounds);
    free(missed);
    free(missed_there);
    MPI_Win_free(&win);
    MPI_Finalize();
    return both != 0;
}
