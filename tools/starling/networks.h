// The networks of this host, by its interfaces with an IPv4 address.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct NetworkReport {
    std::string interface, address;  ///< address with the length of its prefix: 10.1.0.7/16
    bool running = false;            ///< whether the link is up
    bool used = false;               ///< whether STARLING_IP_INTERFACES admits it
};

/// Returns all interfaces that have an IPv4 address, in the system's order.
std::vector<NetworkReport> networks();

}  // namespace starling
