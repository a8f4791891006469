#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMaxBatches = 1000, kPatience = 20 /* seconds for a message */ };

static void die(const char* what) {
    fprintf(stderr, "raw: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_sizes(Raw* raw, const char* text) {
    raw->size_count = 0;
    for (const char* p = text; p && raw->size_count < 32; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        raw->sizes[raw->size_count++] = strtoul(p, NULL, 10);
    }
}

static struct sockaddr_in address(const Raw* raw) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons((uint16_t)raw->port)};
    if (!raw->peer) return result;
    struct addrinfo hints = {.ai_family = AF_INET}, *found = NULL;
    if (getaddrinfo(raw->peer, NULL, &hints, &found) != 0) {
        fprintf(stderr, "raw: unknown host '%s'\n", raw->peer);
        exit(1);
    }
    result.sin_addr = ((struct sockaddr_in*)found->ai_addr)->sin_addr;
    freeaddrinfo(found);
    return result;
}

/* The listener stays open, because the two sides make further connections through it. */
static int listener = -1;

static int meet(const Raw* raw) {
    struct sockaddr_in where = address(raw);
    int fd, on = 1;
    if (raw->peer) {
        /* The other side may not have started yet. */
        for (int tries = 0;; ++tries) {
            fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(fd, (struct sockaddr*)&where, sizeof where) == 0) break;
            if (errno != ECONNREFUSED || tries == 500) die("connect");
            close(fd);
            usleep(10000);
        }
    } else {
        if (listener < 0) {
            listener = socket(AF_INET, SOCK_STREAM, 0);
            setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (bind(listener, (struct sockaddr*)&where, sizeof where) != 0) die("bind");
            if (listen(listener, 4) != 0) die("listen");
        }
        fd = accept(listener, NULL, NULL);
        if (fd < 0) die("accept");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

Raw raw_start(int argc, char** argv, const char* default_sizes) {
    const struct option table[] = {{"listen", 1, NULL, 'l'},
                                   {"connect", 1, NULL, 'c'},
                                   {"poll", 0, NULL, 'p'},
                                   {"json", 0, NULL, 'j'},
                                   {NULL, 0, NULL, 0}};
    Raw raw = {.seconds = 0.2, .batches = 10, .window = 64};
    read_sizes(&raw, default_sizes);
    for (int c; (c = getopt_long(argc, argv, "s:t:b:w:", table, NULL)) != -1;) {
        char* colon;
        switch (c) {
            case 'l':
                raw.port = atoi(optarg);
                break;
            case 'c':
                raw.peer = optarg;
                colon = strchr(optarg, ':');
                if (colon) *colon = 0, raw.port = atoi(colon + 1);
                break;
            case 'p':
                raw.poll = 1;
                break;
            case 'j':
                raw.json = 1;
                break;
            case 's':
                read_sizes(&raw, optarg);
                break;
            case 't':
                raw.seconds = atof(optarg);
                break;
            case 'b':
                raw.batches = atoi(optarg) < kMaxBatches ? atoi(optarg) : kMaxBatches;
                break;
            case 'w':
                raw.window = atoi(optarg);
                break;
            default:
                raw.port = 0;
        }
    }
    if (raw.port == 0) {
        fprintf(stderr,
                "usage: %s --listen PORT | --connect HOST:PORT [--poll] [-s SIZES] [-t SECONDS] [-b BATCHES] "
                "[-w WINDOW] [--json]\n",
                argv[0]);
        exit(2);
    }
    raw.control = meet(&raw);
    return raw;
}

int raw_tcp(const Raw* raw) { return meet(raw); }

int raw_udp(const Raw* raw) {
    struct sockaddr_in mine = {.sin_family = AF_INET}, theirs;
    struct timeval limit = {kPatience, 0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr*)&mine, sizeof mine) != 0) die("UDP socket");
    socklen_t length = sizeof mine;
    getsockname(fd, (struct sockaddr*)&mine, &length);
    /* Each side sends its UDP port over the control connection; the address is that of the connection's peer. */
    if (write(raw->control, &mine.sin_port, 2) != 2) die("write");
    length = sizeof theirs;
    getpeername(raw->control, (struct sockaddr*)&theirs, &length);
    if (read(raw->control, &theirs.sin_port, 2) != 2) die("read");
    if (connect(fd, (struct sockaddr*)&theirs, sizeof theirs) != 0) die("connect");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

void raw_send(const Raw* raw, int fd, const void* data, size_t bytes) {
    const char* next = data;
    while (bytes > 0) {
        ssize_t n = send(fd, next, bytes, raw->poll ? MSG_DONTWAIT : 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) die("send");
        next += n;
        bytes -= (size_t)n;
    }
}

void raw_receive(const Raw* raw, int fd, void* data, size_t bytes) {
    char* next = data;
    double limit = 0;
    for (long tries = 1; bytes > 0; ++tries) {
        ssize_t n = recv(fd, next, bytes, raw->poll ? MSG_DONTWAIT : 0);
        if (n > 0) {
            next += n;
            bytes -= (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EINTR && (errno != EAGAIN || !raw->poll))) die("receive");
        if (tries % 1000000 != 0) continue;
        /* While polling, a lost datagram and a peer that has no core look the same, so the loop waits for kPatience seconds. */
        if (limit == 0) limit = now() + kPatience;
        if (now() > limit) die("receive");
    }
}

static int compare_doubles(const void* a, const void* b) {
    double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

static double batch(const Raw* raw, int fd, RawRound round, char* buffer, size_t bytes, long iterations) {
    long order[2] = {(long)bytes, iterations};
    if (write(raw->control, order, sizeof order) != sizeof order) die("write");
    double before = now();
    round(raw, fd, buffer, bytes, iterations);
    return now() - before;
}

/* Returns the number of iterations that take the wanted time, reached three times in a row. */
static long calibrate(const Raw* raw, int fd, RawRound round, char* buffer, size_t bytes) {
    double wanted = raw->seconds / raw->batches / 2;
    long iterations = 1;
    for (int reached = 0; reached < 3;) {
        if (batch(raw, fd, round, buffer, bytes, iterations) < wanted) {
            iterations *= 2;
            reached = 0;
        } else {
            ++reached;
        }
    }
    return iterations;
}

static void follow(const Raw* raw, int fd, RawRound round, char* buffer) {
    long order[2];
    while (recv(raw->control, order, sizeof order, MSG_WAITALL) == sizeof order) {
        round(raw, fd, buffer, (size_t)order[0], order[1]);
    }
}

int raw_measure(const Raw* raw, int fd, RawRound round, const char* benchmark, const char* unit,
                double (*value)(const Raw* raw, size_t bytes, double seconds)) {
    static double times[kMaxBatches];
    char* buffer = calloc(1, 64 << 20);
    if (!raw->peer) {
        follow(raw, fd, round, buffer);
        return 0;
    }
    if (raw->json) printf("{\"benchmark\": \"%s\", \"unit\": \"%s\", \"ranks\": \"2\", \"rows\": [", benchmark, unit);
    for (int s = 0; s < raw->size_count; ++s) {
        size_t bytes = raw->sizes[s];
        long iterations = calibrate(raw, fd, round, buffer, bytes);
        for (int i = 0; i < raw->batches; ++i) {
            times[i] = batch(raw, fd, round, buffer, bytes, iterations) / (double)iterations;
        }
        qsort(times, (size_t)raw->batches, sizeof *times, compare_doubles);
        double median = (times[raw->batches / 2] + times[(raw->batches - 1) / 2]) / 2;
        double a = value(raw, bytes, times[0]), b = value(raw, bytes, times[raw->batches - 1]);
        const char* form = raw->json ? "%s{\"what\": \"\", \"size\": %zu, \"value\": %.6g, \"min\": %.6g, \"max\": %.6g}"
                                     : "%s%10zu %14.3f %14.3f %14.3f\n";
        printf(form, raw->json && s > 0 ? ", " : "", bytes, value(raw, bytes, median), a < b ? a : b, a < b ? b : a);
    }
    if (raw->json) printf("]}\n");
    free(buffer);
    return 0;
}

void raw_ping_pong(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        if (raw->peer) raw_send(raw, fd, buffer, bytes);
        raw_receive(raw, fd, buffer, bytes);
        if (!raw->peer) raw_send(raw, fd, buffer, bytes);
    }
}

double raw_half(const Raw* raw, size_t bytes, double seconds) {
    (void)raw, (void)bytes;
    return seconds * 1e6 / 2;
}
