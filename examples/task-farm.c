/* A task farm in one job: rank 0 hands out ranges of numbers, and the other ranks count the primes in them.
 *
 *     mpiexec -n 4 ./task-farm 2000000 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRange = 1, kCount, kStop };
enum { kChunk = 10000 };

static long primes_in(long from, long to) {
    long count = 0;
    for (long n = from < 2 ? 2 : from; n < to; ++n) {
        int prime = 1;
        for (long d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
        count += prime;
    }
    return count;
}

static void work(void) {
    long range[2];
    MPI_Status status;
    for (;;) {
        MPI_Recv(range, 2, MPI_LONG, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == kStop) return;
        long count = primes_in(range[0], range[1]);
        MPI_Send(&count, 1, MPI_LONG, 0, kCount, MPI_COMM_WORLD);
    }
}

/* Sends the next range of numbers, or kStop. Returns 1 if there was a range left. */
static int give(int rank, long* next, long limit) {
    long range[2] = {*next, *next + kChunk < limit ? *next + kChunk : limit};
    int more = *next < limit;
    MPI_Send(range, 2, MPI_LONG, rank, more ? kRange : kStop, MPI_COMM_WORLD);
    *next = range[1];
    return more;
}

static long hand_out(int workers, long limit) {
    long next = 0, total = 0;
    int busy = 0;
    for (int rank = 1; rank <= workers; ++rank) busy += give(rank, &next, limit);
    while (busy > 0) {
        long count;
        MPI_Status status;
        MPI_Recv(&count, 1, MPI_LONG, MPI_ANY_SOURCE, kCount, MPI_COMM_WORLD, &status);
        total += count;
        busy += give(status.MPI_SOURCE, &next, limit) - 1;
    }
    return total;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long limit = argc > 1 ? atol(argv[1]) : 200000;
    if (rank > 0) {
        work();
    } else {
        double before = MPI_Wtime();
        long total = size > 1 ? hand_out(size - 1, limit) : primes_in(0, limit);
        printf("%ld primes below %ld, %d workers, %.3f s\n", total, limit, size > 1 ? size - 1 : 1, MPI_Wtime() - before);
    }
    MPI_Finalize();
    return 0;
}
