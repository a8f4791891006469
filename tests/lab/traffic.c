/* Test traffic for fault injection: every process exchanges messages of changing sizes with changing partners and checks every byte, for a
 * given time or without end.
 *
 * traffic SECONDS [LARGEST [FILE]] 0 seconds: without end, or until rank 0 sees FILE. Rank 0 prints "running" when all have started and, at
 * the end, the number of rounds.
 * Messages have 1 to LARGEST bytes (default 300000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned mix(unsigned a, unsigned b, unsigned c) {
    unsigned x = a * 2654435761u ^ b * 2246822519u ^ c * 3266489917u;
    x ^= x >> 15;
    return x * 2654435769u;
}

/* Returns the size of a message, equal on both sides: many small messages and some large ones. */
static int bytes_of(unsigned round, int from, int to, int largest) {
    unsigned x = mix(round, (unsigned)from, (unsigned)to);
    int limit = x % 8 < 5 ? 64 : x % 8 < 7 ? 20000 : largest;
    if (limit > largest) limit = largest;
    return 1 + (int)(x / 8 % (unsigned)limit);
}

static void fill(unsigned char* data, int bytes, unsigned seed) {
    for (int i = 0; i < bytes; ++i) data[i] = (unsigned char)(seed + (unsigned)i * 7u);
}

static void verify(const unsigned char* data, int bytes, unsigned seed, int from, unsigned round) {
    for (int i = 0; i < bytes; ++i) {
        if (data[i] == (unsigned char)(seed + (unsigned)i * 7u)) continue;
        fprintf(stderr, "traffic: rank %d: byte %d of %d from rank %d in round %u is wrong\n", rank, i, bytes, from, round);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static void exchange(unsigned round, unsigned char* out, unsigned char* in, int largest) {
    int distance = 1 + (int)(mix(round, 1, 2) % (unsigned)(size > 1 ? size - 1 : 1));
    int to = (rank + distance) % size, from = (rank + size - distance) % size;
    int sending = bytes_of(round, rank, to, largest), receiving = bytes_of(round, from, rank, largest);
    MPI_Status status;
    int got;
    fill(out, sending, mix(round, (unsigned)rank, 3));
    MPI_Sendrecv(out, sending, MPI_BYTE, to, (int)(round % 1000), in, largest, MPI_BYTE, from, (int)(round % 1000),
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != receiving) {
        fprintf(stderr, "traffic: rank %d: %d bytes instead of %d from rank %d\n", rank, got, receiving, from);
        MPI_Abort(MPI_COMM_WORLD, 8);
    }
    verify(in, got, mix(round, (unsigned)from, 3), from, round);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = argc > 1 ? atof(argv[1]) : 1, start = now();
    int largest = argc > 2 ? atoi(argv[2]) : 300000, go_on = 1;
    const char* end_file = argc > 3 ? argv[3] : NULL;
    unsigned char *out = malloc((size_t)largest), *in = malloc((size_t)largest);
    unsigned round = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("running\n"), fflush(stdout);
    while (go_on) {
        for (int i = 0; i < 20; ++i) exchange(round++, out, in, largest);
        go_on = seconds <= 0 ? !end_file || access(end_file, F_OK) != 0 : now() - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("traffic of %d processes: %u rounds\n", size, round);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
