/* Half the round trip of a datagram between two hosts over plain sockets: the reference for Starling's messages over UDP. */
#include "raw/raw.h"

int main(int argc, char** argv) {
    Raw raw = raw_start(argc, argv, "8,1024");
    return raw_measure(&raw, raw_udp(&raw), raw_ping_pong, "udp-latency", "us", raw_half);
}
