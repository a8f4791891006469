// Socket addresses on the loopback device, for tests that open plain sockets.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace starling::network {

/// Returns the loopback address with this port; 0: any port.
inline sockaddr_in loopback_port(uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made.sin_port = htons(port);
    return made;
}

}  // namespace starling::network
