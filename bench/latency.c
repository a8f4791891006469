/* Half the round trip of a message between two processes (ping-pong), in one job or between parent and child. With --write the buffer is
 * written before each send. */
#include <stdlib.h>
#include <string.h>

#include "common/bench.h"

typedef struct {
    char *out, *in;
    int bytes;
    int check, write;
} Message;

/* Checks that the last message arrived complete. */
static void verify(const Message* m, long last, unsigned seed) {
    if (!m->write) {
        bench_verify(m->in, (size_t)m->bytes, seed, "ping-pong");
        return;
    }
    for (int i = 0; i < m->bytes; ++i) bench_require(m->in[i] == (char)last, "wrong data in ping-pong");
}

/* Sends a message; with --write writes every byte first, and returns the seconds that this took. */
static double send_message(const Pair* pair, const Message* m, long i) {
    double writing = 0;
    if (m->write) {
        double before = bench_now();
        memset(m->out, (int)i, (size_t)m->bytes);
        writing = bench_now() - before;
    }
    MPI_Send(m->out, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm);
    return writing;
}

/* Each round trip includes the writing of both processes, so the follower sends its writing time to the leader, which subtracts it. */
static double writing_of_both(const Pair* pair, double own) {
    double others = 0;
    if (pair->role == 0) {
        MPI_Recv(&others, 1, MPI_DOUBLE, pair->peer, 2, pair->comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&own, 1, MPI_DOUBLE, pair->peer, 2, pair->comm);
    }
    return own + others;
}

static double ping_pong(const Pair* pair, long iterations, void* context) {
    const Message* m = context;
    double writing = 0;
    for (long i = 0; i < iterations; ++i) {
        if (pair->role == 0) {
            writing += send_message(pair, m, i);
            MPI_Recv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE);
            writing += send_message(pair, m, i);
        }
    }
    if (m->check) {
        verify(m, iterations - 1, (unsigned)(1 - pair->role));
        bench_fill(m->in, (size_t)m->bytes, 9);
    }
    return m->write ? writing_of_both(pair, writing) : 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options = bench_options(argc, argv, "latency of messages between two processes", bench_defaults());
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("latency", "us", &options);
    Message message = {bench_message_buffer(&options), bench_message_buffer(&options), 0, options.check, options.write};
    bench_fill(message.out, options.max_bytes, (unsigned)pair.role);
    for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
        message.bytes = (int)bytes;
        bench_row(report, "", bytes, bench_pair_measure(&pair, &options, ping_pong, &message, 1e6 / 2));
    }
    bench_print(report, pair.spawned ? "1+1" : "2", pair.role == 0);
    bench_pair_end(&pair);
    bench_free_message_buffer(&options, message.out);
    bench_free_message_buffer(&options, message.in);
    MPI_Finalize();
    return 0;
}
