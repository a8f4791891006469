/* Half the round trip of a message over a TCP connection between two hosts, over plain sockets without
 * delay. */
#include "raw/raw.h"

static void ping_pong(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        if (raw->peer) raw_send(raw, fd, buffer, bytes);
        raw_receive(raw, fd, buffer, bytes);
        if (!raw->peer) raw_send(raw, fd, buffer, bytes);
    }
}

static double half(const Raw* raw, size_t bytes, double seconds) {
    (void)raw, (void)bytes;
    return seconds * 1e6 / 2;
}

int main(int argc, char** argv) {
    Raw raw = raw_start(argc, argv, "8,1024,65536,1048576");
    return raw_measure(&raw, raw_tcp(&raw), ping_pong, "tcp-latency", "us", half);
}
