/* Command line, control connection, batches and output of the plain-socket programs. Their results are the cost
 * of the kernel's sockets alone, with which the cost of Starling's messages is compared. So the programs do nothing else.
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
    size_t sizes[32]; /* -s 8,1024: sizes to measure, in bytes */
    int size_count;
    double seconds; /* -t: time per size in s */
    int batches;    /* -b: number of batches, whose median is the reported value */
    int window;     /* -w: messages before an acknowledgement (bandwidth) */
    int json;       /* --json: print one line, in the same form as the MPI benchmarks */
    int control;    /* TCP connection by which the leading side controls the other */
} Raw;

/* Reads the command line and connects the two sides. Ends the program with a message on failure. */
Raw raw_start(int argc, char** argv, const char* default_sizes);

/* Returns a TCP connection between the two sides, without delays (TCP_NODELAY). */
int raw_tcp(const Raw* raw);
/* Returns a UDP socket that is connected to the other side's. */
int raw_udp(const Raw* raw);

/* Sends or receives exactly `bytes` bytes of a stream, or one datagram. Polls or blocks as --poll says. The program ends if a datagram does
 * not arrive for long, because there are no retransmissions. */
void raw_send(const Raw* raw, int fd, const void* data, size_t bytes);
void raw_receive(const Raw* raw, int fd, void* data, size_t bytes);

/* One side's part of a round, repeated `iterations` times with messages of `bytes` bytes. */
typedef void (*RawRound)(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations);

/* Measures every size. The leading side prints `value`, computed from the seconds per iteration. */
int raw_measure(const Raw* raw, int fd, RawRound round, const char* benchmark, const char* unit,
                double (*value)(const Raw* raw, size_t bytes, double seconds));

/* A round: a message back and forth. raw_half() returns half of its time in us. */
void raw_ping_pong(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations);
double raw_half(const Raw* raw, size_t bytes, double seconds);

#endif
