/* Bandwidth between two processes: windows of messages, each window acknowledged. One direction, or with --both both directions at once
 * (the sum is reported). As is usual, all messages of a window use one buffer, so sizes that fit in the cache show the bandwidth of the
 * cache. */
#include <stdlib.h>

#include "common/bench.h"

typedef struct {
    char *out, *in;
    int bytes, window, both, check;
    MPI_Request* requests;
} Stream;

static int post(const Pair* pair, const Stream* s, int sends, MPI_Request* requests) {
    for (int k = 0; k < s->window; ++k) {
        if (sends) {
            MPI_Isend(s->out, s->bytes, MPI_BYTE, pair->peer, 2, pair->comm, &requests[k]);
        } else {
            MPI_Irecv(s->in, s->bytes, MPI_BYTE, pair->peer, 2, pair->comm, &requests[k]);
        }
    }
    return s->window;
}

static double windows(const Pair* pair, long iterations, void* context) {
    const Stream* s = context;
    char word = 0;
    for (long i = 0; i < iterations; ++i) {
        int posted = 0;
        if (s->both || pair->role == 1) posted += post(pair, s, 0, s->requests);
        if (s->both || pair->role == 0) posted += post(pair, s, 1, s->requests + posted);
        MPI_Waitall(posted, s->requests, MPI_STATUSES_IGNORE);
        if (pair->role == 1) {
            MPI_Send(&word, 1, MPI_BYTE, pair->peer, 3, pair->comm);
        } else {
            MPI_Recv(&word, 1, MPI_BYTE, pair->peer, 3, pair->comm, MPI_STATUS_IGNORE);
        }
    }
    if (s->check && (s->both || pair->role == 1)) {
        bench_verify(s->in, (size_t)s->bytes, (unsigned)(1 - pair->role), "bandwidth");
    }
    return 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 1;
    defaults.max_bytes = 4 << 20;
    Options options = bench_options(argc, argv, "bandwidth between two processes", defaults);
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report(options.both ? "bandwidth-both" : "bandwidth", "MB/s", &options);
    Stream stream = {bench_message_buffer(&options),
                     bench_message_buffer(&options),
                     0,
                     options.window,
                     options.both,
                     options.check,
                     malloc(2 * (size_t)options.window * sizeof(MPI_Request))};
    bench_fill(stream.out, options.max_bytes, (unsigned)pair.role);
    options.warm_up = (options.warm_up + 9) / 10;
    for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
        stream.bytes = (int)bytes;
        Stats seconds = bench_pair_measure(&pair, &options, windows, &stream, 1.0);
        double megabytes = 1e-6 * (double)bytes * options.window * (options.both ? 2 : 1);
        if (pair.role == 0) bench_row(report, "", bytes, bench_rate(seconds, megabytes));
    }
    bench_print(report, pair.spawned ? "1+1" : "2", pair.role == 0);
    bench_pair_end(&pair);
    bench_free_message_buffer(&options, stream.out);
    bench_free_message_buffer(&options, stream.in);
    free(stream.requests);
    MPI_Finalize();
    return 0;
}
