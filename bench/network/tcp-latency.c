/* Half the round trip of a message over a TCP connection between two hosts, over plain sockets without
 * delay. */
#include "raw/raw.h"

int main(int argc, char** argv) {
    Raw raw = raw_start(argc, argv, "8,1024,65536,1048576");
    return raw_measure(&raw, raw_tcp(&raw), raw_ping_pong, "tcp-latency", "us", raw_half);
}
