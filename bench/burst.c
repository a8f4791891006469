/* Bursts of messages between two processes: each process starts all messages of a burst (-w, 64), then waits for all of them. Each message
 * has memory of its own, so a burst does not find its data in the cache of a core. One way, or both ways at the same time. The value is the
 * time of a burst, divided by its messages. */
#include <stdlib.h>

#include "common/bench.h"

typedef struct {
    char *out, *in;
    int bytes, messages, both, check;
    MPI_Request* requests;
} Burst;

static char* buffer_of(char* all, const Burst* b, int message) { return all + (size_t)message * (size_t)b->bytes; }

static void exchange(const Pair* pair, const Burst* b) {
    int posted = 0;
    if (b->both || pair->role == 1)
        for (int k = 0; k < b->messages; ++k)
            MPI_Irecv(buffer_of(b->in, b, k), b->bytes, MPI_BYTE, pair->peer, k, pair->comm, &b->requests[posted++]);
    if (b->both || pair->role == 0)
        for (int k = 0; k < b->messages; ++k)
            MPI_Isend(buffer_of(b->out, b, k), b->bytes, MPI_BYTE, pair->peer, k, pair->comm, &b->requests[posted++]);
    MPI_Waitall(posted, b->requests, MPI_STATUSES_IGNORE);
}

static double bursts(const Pair* pair, long iterations, void* context) {
    const Burst* b = context;
    char word = 0;
    for (long i = 0; i < iterations; ++i) {
        exchange(pair, b);
        if (pair->role == 1) {
            MPI_Send(&word, 1, MPI_BYTE, pair->peer, b->messages, pair->comm);
        } else {
            MPI_Recv(&word, 1, MPI_BYTE, pair->peer, b->messages, pair->comm, MPI_STATUS_IGNORE);
        }
    }
    if (b->check && (b->both || pair->role == 1)) {
        size_t all = (size_t)b->bytes * (size_t)b->messages;
        bench_verify(b->in, all, (unsigned)(1 - pair->role), "a burst");
        bench_fill(b->in, all, 9);
    }
    return 0;
}

int main(int argc, char** argv) {
    static const char* const kNames[] = {"one-way", "both-ways"};
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 16 << 10;
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "bursts of messages between two processes", defaults);
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("burst", "us", &options);
    Options all = options;
    all.max_bytes *= (size_t)options.window;
    Burst burst = {bench_message_buffer(&all),
                   bench_message_buffer(&all),
                   0,
                   options.window,
                   0,
                   options.check,
                   malloc(2 * (size_t)options.window * sizeof(MPI_Request))};
    bench_fill(burst.out, all.max_bytes, (unsigned)pair.role);
    for (burst.both = 0; burst.both < 2; ++burst.both) {
        if (!bench_wanted(&options, kNames[burst.both])) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
            burst.bytes = (int)bytes;
            Stats stats = bench_pair_measure(&pair, &options, bursts, &burst, 1e6 / options.window);
            bench_row(report, kNames[burst.both], bytes, stats);
        }
    }
    bench_print(report, pair.spawned ? "1+1" : "2", pair.role == 0);
    bench_pair_end(&pair);
    bench_free_message_buffer(&all, burst.out);
    bench_free_message_buffer(&all, burst.in);
    free(burst.requests);
    MPI_Finalize();
    return 0;
}
