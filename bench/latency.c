/* Half the round trip of a message between two processes (ping-pong), in one job or between parent and
 * child. */
#include <stdlib.h>

#include "common/bench.h"

typedef struct {
    void *out, *in;
    int bytes;
    int check;
} Message;

static void ping_pong(const Pair* pair, long iterations, void* context) {
    const Message* m = context;
    for (long i = 0; i < iterations; ++i) {
        if (pair->role == 0) {
            MPI_Send(m->out, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm);
            MPI_Recv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE);
            MPI_Send(m->out, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm);
        }
    }
    if (m->check) {
        bench_verify(m->in, (size_t)m->bytes, (unsigned)(1 - pair->role), "ping-pong");
        bench_fill(m->in, (size_t)m->bytes, 9);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options =
        bench_options(argc, argv, "latency of messages between two processes", bench_defaults());
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("latency", "us", &options);
    Message message = {bench_buffer(options.max_bytes), bench_buffer(options.max_bytes), 0, options.check};
    bench_fill(message.out, options.max_bytes, (unsigned)pair.role);
    for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
        message.bytes = (int)bytes;
        bench_row(report, "", bytes, bench_pair_measure(&pair, &options, ping_pong, &message, 1e6 / 2));
    }
    bench_print(report, pair.spawned ? "1+1" : "2", pair.role == 0);
    bench_pair_end(&pair);
    free(message.out);
    free(message.in);
    MPI_Finalize();
    return 0;
}
