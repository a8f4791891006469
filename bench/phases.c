/* Partners that change by phase and recur, as in codes with adaptive meshes. In each phase a process sends to several others and receives
 * from as many. They are drawn once for each kind of phase, and the kinds follow each other in cycles. Plain MPI; rank 0 prints one line
 * of JSON: the total time of the slowest process in seconds, and the median phase in milliseconds. If the library reports it (Starling, by
 * MPI_T), there are also the share of the packets that used connections, and the number of connections opened.
 *
 *   phases [KINDS [CYCLES [PARTNERS [MESSAGES [BYTES [mark|plain [SEED [WINDOW]]]]]]]]
 *
 * MESSAGES: number that a process sends in a phase, PARTNERS: their receivers. mark: each phase begins with MPI_Pcontrol(3 + kind), which
 * other libraries ignore. SEED: determines the partners. WINDOW: messages to a partner that are in transmission at a time. Each phase
 * begins with an allreduce of one number, as such codes have it (the time step). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/paths.h"

enum { kWindow = 16, kTag = 8, kMostPartners = 64 };

static int rank, size;

typedef struct {
    int kinds, cycles, partners, messages, bytes, marks, seed, window;
    int* order;  /* one permutation of the processes per kind of phase; neighbors in it are partners */
    int* places; /* position of this process in each permutation */
    char *out, *in;
    MPI_Request* requests;
} Job;

static unsigned draw(unsigned* seed, unsigned below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void draw_orders(Job* job) {
    unsigned seed = (unsigned)job->seed;
    job->order = malloc((size_t)job->kinds * (size_t)size * sizeof(int));
    job->places = malloc((size_t)job->kinds * sizeof(int));
    for (int kind = 0; kind < job->kinds; ++kind) {
        int* order = job->order + (size_t)kind * (size_t)size;
        for (int i = 0; i < size; ++i) order[i] = i;
        for (int i = size - 1; i > 0; --i) {
            int j = (int)draw(&seed, (unsigned)i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        for (int i = 0; i < size; ++i)
            if (order[i] == rank) job->places[kind] = i;
    }
}

static int neighbour(const Job* job, int kind, int distance) {
    return job->order[(size_t)kind * (size_t)size + (size_t)((job->places[kind] + distance + size) % size)];
}

static void require(int condition, const char* what) {
    if (condition) return;
    fprintf(stderr, "phases: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static char pattern(int from, int to, int number) { return (char)(from * 131 + to * 17 + number); }

static void exchange(Job* job, int kind, int first, int count) {
    int posted = 0;
    size_t bytes = (size_t)job->bytes;
    for (int d = 0; d < job->partners; ++d)
        for (int k = 0; k < count; ++k)
            MPI_Irecv(job->in + (size_t)(d * job->window + k) * bytes, job->bytes, MPI_BYTE, neighbour(job, kind, -d - 1), kTag,
                      MPI_COMM_WORLD, &job->requests[posted++]);
    for (int d = 0; d < job->partners; ++d)
        for (int k = 0; k < count; ++k) {
            char* message = job->out + (size_t)(d * job->window + k) * bytes;
            int to = neighbour(job, kind, d + 1);
            if (bytes) message[0] = message[bytes - 1] = pattern(rank, to, first + k);
            MPI_Isend(message, job->bytes, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &job->requests[posted++]);
        }
    MPI_Waitall(posted, job->requests, MPI_STATUSES_IGNORE);
    for (int d = 0; bytes && d < job->partners; ++d)
        for (int k = 0; k < count; ++k) {
            const char* message = job->in + (size_t)(d * job->window + k) * bytes;
            char right = pattern(neighbour(job, kind, -d - 1), rank, first + k);
            require(message[0] == right && message[bytes - 1] == right, "a received message differs from the sent one");
        }
}

static void phase(Job* job, int kind, int number) {
    int sum = 0, each = job->messages / job->partners;
    if (job->marks) MPI_Pcontrol(3 + kind);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    require(sum == number * size, "a sum is wrong");
    for (int first = 0; first < each; first += job->window)
        exchange(job, kind, first, each - first < job->window ? each - first : job->window);
}

static int compare(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static int number_of(int argc, char** argv, int at, int otherwise) { return argc > at ? atoi(argv[at]) : otherwise; }

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Job job = {0};
    job.kinds = number_of(argc, argv, 1, 4);
    job.cycles = number_of(argc, argv, 2, 5);
    job.partners = number_of(argc, argv, 3, 2);
    job.messages = number_of(argc, argv, 4, 1000);
    job.bytes = number_of(argc, argv, 5, 1024);
    job.marks = argc <= 6 || strcmp(argv[6], "plain") != 0;
    job.seed = number_of(argc, argv, 7, 1);
    job.window = number_of(argc, argv, 8, kWindow);
    if (job.kinds < 1 || job.cycles < 1 || job.partners < 1 || job.partners >= size || job.partners > kMostPartners ||
        job.messages < job.partners || job.bytes < 0 || job.window < 1) {
        if (rank == 0) fprintf(stderr, "phases [KINDS [CYCLES [PARTNERS [MESSAGES [BYTES [mark|plain [SEED [WINDOW]]]]]]]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    draw_orders(&job);
    size_t slots = (size_t)job.partners * (size_t)job.window;
    job.out = calloc(slots, (size_t)job.bytes + 1);
    job.in = calloc(slots, (size_t)job.bytes + 1);
    job.requests = malloc(2 * slots * sizeof(MPI_Request));
    int phases = job.kinds * job.cycles;
    double* times = malloc((size_t)phases * sizeof *times);
    Paths* paths = bench_paths();
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), whole = 0, slowest = 0;
    for (int i = 0; i < phases; ++i) {
        double before = MPI_Wtime();
        phase(&job, i % job.kinds, i);
        times[i] = MPI_Wtime() - before;
    }
    whole = MPI_Wtime() - begin;
    MPI_Reduce(&whole, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(times, (size_t)phases, sizeof *times, compare);
    PathShare share = bench_path_share(paths, MPI_COMM_WORLD);
    if (rank == 0)
        printf(
            "{\"operation\": \"phases\", \"ranks\": %d, \"kinds\": %d, \"cycles\": %d, \"partners\": %d, \"messages\": %d, "
            "\"bytes\": %d, \"seconds\": %.6f, \"phase_ms\": %.4f, \"share\": %.4f, \"opened\": %.0f}\n",
            size, job.kinds, job.cycles, job.partners, job.messages, job.bytes, slowest, times[phases / 2] * 1e3,
            share.on_connections, share.opened);
    free(job.order);
    free(job.places);
    free(job.out);
    free(job.in);
    free(job.requests);
    free(times);
    MPI_Finalize();
    return 0;
}
