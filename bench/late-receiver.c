/* Messages whose receiver is late: it computes, without any MPI call, while the sender has long begun to send. The value is the time from
 * the end of the computation until the message is there and the sender's next one may begin: what the receiver still has to wait. With the
 * operation "posted" the receive is posted before the computation, and waited for after it. */
#include "common/bench.h"

typedef struct {
    char *out, *in;
    int bytes, posted, check;
    long work; /* units of computation before each receive */
} Message;

/* Receives a message after a computation; returns the seconds that this took. */
static double receive_late(const Pair* pair, const Message* m) {
    MPI_Request request;
    if (m->posted) MPI_Irecv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, &request);
    double before = bench_now();
    bench_compute(m->work);
    double computing = bench_now() - before;
    if (m->posted) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(m->in, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE);
    }
    return computing;
}

/* The process that leads the measurement receives, because it alone can subtract its computation. */
static double messages(const Pair* pair, long iterations, void* context) {
    const Message* m = context;
    char word = 0;
    double computing = 0;
    for (long i = 0; i < iterations; ++i) {
        if (pair->role == 0) {
            computing += receive_late(pair, m);
            MPI_Send(&word, 1, MPI_BYTE, pair->peer, 2, pair->comm);
        } else {
            MPI_Send(m->out, m->bytes, MPI_BYTE, pair->peer, 1, pair->comm);
            MPI_Recv(&word, 1, MPI_BYTE, pair->peer, 2, pair->comm, MPI_STATUS_IGNORE);
        }
    }
    if (m->check && pair->role == 0) {
        bench_verify(m->in, (size_t)m->bytes, 1, "a late receive");
        bench_fill(m->in, (size_t)m->bytes, 9);
    }
    return computing;
}

int main(int argc, char** argv) {
    static const char* const kNames[] = {"late", "posted"};
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.min_bytes = 16 << 10;
    defaults.compute = "100";
    Options options = bench_options(argc, argv, "messages to a process that computes before it receives", defaults);
    Pair pair = bench_pair(&options, argv);
    Report* report = bench_report("late-receiver", "us", &options);
    Message message = {bench_message_buffer(&options), bench_message_buffer(&options), 0, 0, options.check, 0};
    message.work = bench_units((double)bench_next_of(options.compute, -1));
    bench_fill(message.out, options.max_bytes, (unsigned)pair.role);
    for (message.posted = 0; message.posted < 2; ++message.posted) {
        if (!bench_wanted(&options, kNames[message.posted])) continue;
        for (long bytes = bench_next_size(&options, -1); bytes >= 0; bytes = bench_next_size(&options, bytes)) {
            message.bytes = (int)bytes;
            bench_row(report, kNames[message.posted], bytes, bench_pair_measure(&pair, &options, messages, &message, 1e6));
        }
    }
    bench_print(report, pair.spawned ? "1+1" : "2", pair.role == 0);
    bench_pair_end(&pair);
    bench_free_message_buffer(&options, message.out);
    bench_free_message_buffer(&options, message.in);
    MPI_Finalize();
    return 0;
}
