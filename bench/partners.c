/* Changing partners: in each phase every process exchanges messages with several others, chosen anew, as in codes with adaptive meshes.
 * Time per message that a process sends, in the slowest one.
 *
 * - phases: number of peers, messages per peer and their size all change by phase.
 * - same-partners: the same phases, but the partners never change, which shows the cost of the change.
 * - peers: one row per number of peers; messages of 1 KB (-w per peer), new partners in each phase.
 * - messages: one row per number of messages to a peer in a phase; 1 KB, at most four peers, new partners in each phase.
 *
 * -k: numbers of peers; -s: sizes from which `phases` chooses at random. */
#include <stdlib.h>

#include "common/team.h"

enum { kAtATime = 16 }; /* messages per peer in flight in one direction */
enum { kDataTag = 8 };

typedef struct {
    int peers, messages, bytes;
} Phase;

typedef struct {
    const Options* options;
    int most_peers;
    int* order;    /* permutation of the processes in this phase; a process's partners stand next to it */
    unsigned seed; /* random seed, the same on all processes */
    int draw, change, check;
    Phase fixed; /* parameters of the phases whose parameters are not random */
    char *out, *in;
    MPI_Request* requests;
    double sent; /* messages */
    long played; /* number of phases over which `sent` is summed */
} Play;

static unsigned draw(unsigned* seed, unsigned below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void shuffle(const Team* t, Play* p) {
    for (int i = t->total - 1; i > 0; --i) {
        int j = (int)draw(&p->seed, (unsigned)i + 1), kept = p->order[i];
        p->order[i] = p->order[j];
        p->order[j] = kept;
    }
}

static Phase next_phase(Play* p) {
    long sizes[32], bytes = -1;
    unsigned count = 0;
    if (!p->draw) return p->fixed;
    while (count < 32 && (bytes = bench_next_size(p->options, bytes)) >= 0) sizes[count++] = bytes;
    Phase phase;
    phase.peers = 1 + (int)draw(&p->seed, (unsigned)p->most_peers);
    phase.messages = 1 + (int)draw(&p->seed, (unsigned)p->options->window);
    phase.bytes = (int)sizes[draw(&p->seed, count)];
    return phase;
}

static unsigned seed_of(int from, int to, int number) { return (unsigned)(from * 131 + to * 17 + number); }

/* Returns the address of message k to or from peer d in a buffer. */
static char* slot(const Play* p, char* buffer, int d, int k) {
    return buffer + ((size_t)d * kAtATime + (size_t)k) * p->options->max_bytes;
}

/* Exchanges up to kAtATime messages with each peer, from message number `first` on. */
static void exchange(const Team* t, Play* p, const Phase* phase, int place, int first) {
    int now = phase->messages - first < kAtATime ? phase->messages - first : kAtATime, posted = 0;
    for (int d = 0; d < phase->peers; ++d) {
        int source = p->order[(place + t->total - d - 1) % t->total];
        for (int k = 0; k < now; ++k) {
            MPI_Irecv(slot(p, p->in, d, k), phase->bytes, MPI_BYTE, source, kDataTag, t->control, &p->requests[posted++]);
        }
    }
    for (int d = 0; d < phase->peers; ++d) {
        int target = p->order[(place + d + 1) % t->total];
        for (int k = 0; k < now; ++k) {
            char* message = slot(p, p->out, d, k);
            if (p->check) bench_fill(message, (size_t)phase->bytes, seed_of(t->id, target, first + k));
            MPI_Isend(message, phase->bytes, MPI_BYTE, target, kDataTag, t->control, &p->requests[posted++]);
        }
    }
    MPI_Waitall(posted, p->requests, MPI_STATUSES_IGNORE);
    for (int d = 0; d < phase->peers && p->check; ++d) {
        int source = p->order[(place + t->total - d - 1) % t->total];
        for (int k = 0; k < now; ++k) {
            bench_verify(slot(p, p->in, d, k), (size_t)phase->bytes, seed_of(source, t->id, first + k),
                         "a message of a partner");
        }
    }
}

static void phases(const Team* t, long iterations, void* context) {
    Play* p = context;
    for (long i = 0; i < iterations; ++i) {
        Phase phase = next_phase(p);
        if (p->change) shuffle(t, p);
        int place = 0;
        while (p->order[place] != t->id) ++place;
        for (int first = 0; first < phase.messages; first += kAtATime) exchange(t, p, &phase, place, first);
        p->sent += (double)phase.peers * phase.messages;
        ++p->played;
    }
}

/* Returns microseconds per message. The phases are random, so the messages of all batches are counted. */
static Stats measure(const Team* t, const Options* options, Play* p) {
    enum { kPhases = 20 };
    Options fixed = *options;
    if (fixed.iterations == 0) fixed.iterations = kPhases;
    fixed.warm_up = 2;
    for (int i = 0; i < t->total; ++i) p->order[i] = i;
    p->seed = 1;
    p->check = options->check;
    if (p->check) phases(t, 5, p);
    p->check = 0;
    phases(t, fixed.warm_up, p);
    fixed.warm_up = 0;
    p->sent = 0;
    p->played = 0;
    Stats s = bench_team_measure(t, &fixed, phases, p, 1e6);
    return bench_scaled(s, (double)p->played / p->sent);
}

static void measure_all(const Team* t, const Options* options, Play* p, Report* report) {
    Stats s;
    for (int change = 1; change >= 0 && bench_wanted(options, "phases"); --change) {
        p->draw = 1;
        p->change = change;
        s = measure(t, options, p);
        bench_row(report, change ? "phases" : "same-partners", p->most_peers, s);
    }
    p->draw = 0;
    p->change = 1;
    long n = bench_next_of(options->counts, 0);
    for (; n > 0 && n <= p->most_peers && bench_wanted(options, "peers"); n = bench_next_of(options->counts, n)) {
        p->fixed = (Phase){(int)n, options->window, 1024};
        s = measure(t, options, p);
        bench_row(report, "peers", n, s);
    }
    for (n = 1; n <= 1000 && bench_wanted(options, "messages"); n *= 10) {
        p->fixed = (Phase){p->most_peers < 4 ? p->most_peers : 4, (int)n, 1024};
        s = measure(t, options, p);
        bench_row(report, "messages", n, s);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "8,1024,16384";
    defaults.max_bytes = 16384;
    defaults.counts = "1,2,4,8,16";
    defaults.window = 100;
    Options options = bench_options(argc, argv, "changing partners; -o phases,peers,messages", defaults);
    if (options.max_bytes < 1024) options.max_bytes = 1024;
    Team team = bench_team(&options, argv);
    bench_require(team.total >= 2, "there must be at least two processes");
    Play play = {0};
    play.options = &options;
    for (long n = bench_next_of(options.counts, 0); n > 0 && n < team.total; n = bench_next_of(options.counts, n))
        play.most_peers = (int)n;
    bench_require(play.most_peers > 0, "-k contains no number of peers that fits the job");
    size_t slots = (size_t)play.most_peers * kAtATime;
    play.order = malloc((size_t)team.total * sizeof(int));
    play.out = bench_buffer(slots * options.max_bytes);
    play.in = bench_buffer(slots * options.max_bytes);
    play.requests = malloc(2 * slots * sizeof(MPI_Request));
    Report* report = bench_report("partners", "us per message", &options);
    measure_all(&team, &options, &play, report);
    bench_team_print(&team, report);
    free(play.order);
    free(play.out);
    free(play.in);
    free(play.requests);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
