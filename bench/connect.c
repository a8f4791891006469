/* Two halves of a job that connect through a port: open, publish, look up, accept/connect, first round trip, merge, disconnect. Also
 * MPI_Comm_join over a socket between the first processes of the halves. Each time is measured in one of these two processes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bench.h"

enum { kMaxRepetitions = 1000 };
enum Step { kOpen, kPublish, kLookup, kConnect, kFirst, kMerge, kDisconnect, kUnpublish, kClose, kJoin, kSteps };
static const struct {
    const char* name;
    const char* group; /* name by which -o selects the operation */
} kNames[kSteps] = {{"open-port", "connect"},        {"publish", "names"}, {"lookup", "names"},       {"connect", "connect"},
                    {"first-round-trip", "connect"}, {"merge", "connect"}, {"disconnect", "connect"}, {"unpublish", "names"},
                    {"close-port", "connect"},       {"join", "join"}};

typedef struct {
    MPI_Comm half;
    int side;   /* side of the connection; 0: accepts */
    int first;  /* whether this process is the first of its half */
    int second; /* used by side 0: rank in MPI_COMM_WORLD of the other half's first process */
    int size;   /* number of processes of the half */
    int names;
    char service[40]; /* name of the service, unique to this job: other jobs may run at the same time */
} Party;

static double since(double* last) {
    double time = bench_now(), passed = time - *last;
    *last = time;
    return passed;
}

static void round_trip(const Party* p, MPI_Comm comm) {
    long word = p->side;
    if (!p->first) return;
    if (p->side == 0) MPI_Send(&word, 1, MPI_LONG, 0, 0, comm);
    MPI_Recv(&word, 1, MPI_LONG, 0, 0, comm, MPI_STATUS_IGNORE);
    bench_require(word == 0, "the first message is wrong");
    if (p->side == 1) MPI_Send(&word, 1, MPI_LONG, 0, 0, comm);
}

/* Connects the two halves of the job once both know the port, and times each step. */
static void meet(const Party* p, char* port, double* times) {
    MPI_Comm other, merged;
    MPI_Barrier(MPI_COMM_WORLD);
    double last = bench_now();
    if (p->side == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, p->half, &other);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, p->half, &other);
    }
    times[kConnect] = since(&last);
    round_trip(p, other);
    times[kFirst] = since(&last);
    MPI_Intercomm_merge(other, p->side, &merged);
    times[kMerge] = since(&last);
    int size;
    MPI_Comm_size(merged, &size);
    bench_require(size == 2 * p->size, "the merged communicator has the wrong size");
    MPI_Comm_free(&merged);
    MPI_Barrier(MPI_COMM_WORLD);
    last = bench_now();
    MPI_Comm_disconnect(&other);
    times[kDisconnect] = since(&last);
}

static void once(const Party* p, double* times) {
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    double last = bench_now();
    int leads = p->first && p->side == 0, looks = p->first && p->side == 1;
    if (leads) {
        MPI_Open_port(MPI_INFO_NULL, port);
        times[kOpen] = since(&last);
        if (p->names) MPI_Publish_name(p->service, MPI_INFO_NULL, port);
        times[kPublish] = since(&last);
    }
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (looks && p->names) {
        last = bench_now();
        MPI_Lookup_name(p->service, MPI_INFO_NULL, found);
        times[kLookup] = since(&last);
    }
    MPI_Bcast(&times[kLookup], 1, MPI_DOUBLE, p->second, MPI_COMM_WORLD);
    meet(p, looks && p->names ? found : port, times);
    if (!leads) return;
    last = bench_now();
    if (p->names) MPI_Unpublish_name(p->service, MPI_INFO_NULL, port);
    times[kUnpublish] = since(&last);
    MPI_Close_port(port);
    times[kClose] = since(&last);
}

/* Returns a connected socket between the two processes, over loopback. */
static int make_socket(const Party* p) {
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), connected = fd;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (p->side == 0) {
        bench_require(bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, 1) == 0 &&
                          getsockname(fd, (struct sockaddr*)&address, &length) == 0,
                      "can't listen on loopback");
        MPI_Send(&address.sin_port, 1, MPI_UINT16_T, p->second, 0, MPI_COMM_WORLD);
        connected = accept(fd, NULL, NULL);
        close(fd);
    } else {
        MPI_Recv(&address.sin_port, 1, MPI_UINT16_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) connected = -1;
    }
    bench_require(connected >= 0, "can't connect over loopback");
    return connected;
}

static void join(const Party* p, double* times) {
    MPI_Comm other;
    if (!p->first) return;
    int fd = make_socket(p);
    double last = bench_now();
    MPI_Comm_join(fd, &other);
    times[kJoin] = since(&last);
    bench_require(other != MPI_COMM_NULL, "MPI_Comm_join returned no communicator");
    round_trip(p, other);
    MPI_Comm_disconnect(&other);
    close(fd);
}

static Party make_party(int names) {
    Party p = {MPI_COMM_NULL, 0, 0, 0, 0, names, ""};
    long job = (long)getpid();
    MPI_Bcast(&job, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(p.service, sizeof p.service, "starling-bench-connect-%ld", job);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bench_require(size % 2 == 0, "the number of processes must be even");
    p.size = size / 2;
    p.second = p.size;
    p.side = rank >= p.second;
    p.first = rank == 0 || rank == p.second;
    MPI_Comm_split(MPI_COMM_WORLD, p.side, rank, &p.half);
    return p;
}

int main(int argc, char** argv) {
    static double times[kSteps][kMaxRepetitions];
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.iterations = 20;
    defaults.warm_up = 2;
    Options options = bench_options(argc, argv, "accept/connect; -o connect,names,join", defaults);
    Party party = make_party(bench_wanted(&options, "names"));
    int repetitions = options.iterations < kMaxRepetitions ? (int)options.iterations : kMaxRepetitions;
    int ports = party.names || bench_wanted(&options, "connect"), joins = bench_wanted(&options, "join");
    for (int i = -options.warm_up; i < repetitions; ++i) {
        double one[kSteps] = {0};
        if (ports) once(&party, one);
        if (joins) join(&party, one);
        for (int step = 0; step < kSteps && i >= 0; ++step) times[step][i] = one[step] * 1e6;
    }
    if (party.first && party.side == 0) {
        Report* report = bench_report("connect", "us", &options);
        for (int step = 0; step < kSteps; ++step) {
            if (!bench_wanted(&options, kNames[step].group)) continue;
            bench_row(report, kNames[step].name, party.size, bench_stats(times[step], repetitions));
        }
        bench_print_world(report);
    }
    MPI_Comm_free(&party.half);
    MPI_Finalize();
    return 0;
}
