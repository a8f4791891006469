/* Messages per second of all pairs together: each process of the first half sends to one of the second half; --spawn K: each of K parents
 * sends to a child. */
#include <stdlib.h>

#include "common/team.h"

enum { kData = 4, kAnswer };

typedef struct {
    char* buffer;
    int bytes, window, check;
    MPI_Request* requests;
} Stream;

static void windows(const Team* t, long iterations, void* context) {
    const Stream* s = context;
    int half = t->inter ? 0 : t->total / 2, sends = t->inter ? t->side == 0 : t->rank < half;
    int peer = sends ? t->rank + half : t->rank - half; /* rank of the partner; the same rank between two groups */
    char word = 0;
    for (long i = 0; i < iterations; ++i) {
        for (int k = 0; k < s->window; ++k) {
            if (sends) {
                MPI_Isend(s->buffer, s->bytes, MPI_BYTE, peer, kData, t->comm, &s->requests[k]);
            } else {
                MPI_Irecv(s->buffer, s->bytes, MPI_BYTE, peer, kData, t->comm, &s->requests[k]);
            }
        }
        MPI_Waitall(s->window, s->requests, MPI_STATUSES_IGNORE);
        if (sends) {
            MPI_Recv(&word, 1, MPI_BYTE, peer, kAnswer, t->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(&word, 1, MPI_BYTE, peer, kAnswer, t->comm);
        }
    }
    if (s->check && !sends) {
        bench_verify(s->buffer, (size_t)s->bytes, (unsigned)peer, "message rate");
        bench_fill(s->buffer, (size_t)s->bytes, (unsigned)t->rank);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 8;
    defaults.max_bytes = 8;
    Options options = bench_options(argc, argv, "messages per second of several pairs", defaults);
    options.warm_up = (options.warm_up + 9) / 10;
    Team team = bench_team(&options, argv);
    bench_require(team.inter ? team.size[0] == team.size[1] : team.total % 2 == 0,
                  "the number of processes must be even, or as many children as parents");
    Report* report = bench_report("message-rate", "million/s", &options);
    Stream stream = {bench_buffer(options.max_bytes), 0, options.window, options.check,
                     malloc((size_t)options.window * sizeof(MPI_Request))};
    for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
        stream.bytes = (int)bytes;
        bench_fill(stream.buffer, (size_t)bytes, (unsigned)team.rank);
        Stats seconds = bench_team_measure(&team, &options, windows, &stream, 1.0);
        bench_row(report, "", bytes, bench_rate(seconds, 1e-6 * options.window * (team.total / 2)));
    }
    bench_team_print(&team, report);
    free(stream.buffer);
    free(stream.requests);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
