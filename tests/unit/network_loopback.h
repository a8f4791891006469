// Sockets of the tests' own, on the loopback device.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace starling::network {

/// A port there; 0: any.
inline sockaddr_in loopback_port(uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made.sin_port = htons(port);
    return made;
}

}  // namespace starling::network
