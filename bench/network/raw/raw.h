/* What the plain-socket programs share: command line, the two sides' control connection, batches, output.
 * They are the yardstick for what a message over the network costs above the kernel's own sockets, so they
 * do nothing else.
 *
 *   udp-latency --listen 7000 --poll &                on one host
 *   udp-latency --connect lab2:7000 --poll -s 8       on another: measures, prints */
#ifndef RAW_H
#define RAW_H

#include <stddef.h>

typedef struct {
    const char* peer; /* --connect HOST:PORT; NULL on the side that listens */
    int port;
    int poll;         /* --poll: never sleeps in the kernel; default: blocking calls */
    size_t sizes[32]; /* -s 8,1024: what is measured, in bytes */
    int size_count;
    double seconds; /* -t per size */
    int batches;    /* -b the reported value is the median over batches */
    int window;     /* -w messages before an acknowledgement (bandwidth) */
    int json;       /* --json: one line, the same form as that of the MPI benchmarks */
    int control;    /* the TCP connection by which the leading side says what comes next */
} Raw;

/* Reads the command line and connects the two sides. Ends the program with a message if it can't. */
Raw raw_start(int argc, char** argv, const char* default_sizes);

/* A TCP connection between the two sides, without delays (TCP_NODELAY). */
int raw_tcp(const Raw* raw);
/* A UDP socket at each side, connected to the other's. */
int raw_udp(const Raw* raw);

/* Sends or receives exactly so many bytes of a stream, or one datagram; waits as --poll says. A datagram
 * that doesn't come for long ends the program: nothing is repeated here. */
void raw_send(const Raw* raw, int fd, const void* data, size_t bytes);
void raw_receive(const Raw* raw, int fd, void* data, size_t bytes);

/* What both sides do `iterations` times with messages of `bytes`. */
typedef void (*RawRound)(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations);

/* Measures every size and prints on the leading side: seconds per iteration, given to `value`. */
int raw_measure(const Raw* raw, int fd, RawRound round, const char* benchmark, const char* unit,
                double (*value)(const Raw* raw, size_t bytes, double seconds));

/* A round: a message there and back; and half of what it takes, in us. */
void raw_ping_pong(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations);
double raw_half(const Raw* raw, size_t bytes, double seconds);

#endif
