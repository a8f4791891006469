// Where daemons listen and what they connect to. IPv4 only.
#pragma once

#include <netinet/in.h>

#include <string>
#include <string_view>
#include <vector>

#include "launch/tree/messages.h"

namespace starling::launch {

/// This machine's addresses on interfaces that are up. `filter` names interfaces or addresses, separated by commas; empty
/// means all but loopback, or loopback if there is nothing else. MPI_ERR_ARG with failure_text() if a name of
/// the filter is unknown.
int own_addresses(std::string_view filter, std::vector<std::string>& out);

/// `endpoints` with those first that lie in a network this machine is directly connected to.
std::vector<Endpoint> nearest_first(std::vector<Endpoint> endpoints);

/// False if it is not an IPv4 address in digits.
bool socket_address(const Endpoint& endpoint, sockaddr_in& out);

/// "10.0.0.1 port 4711".
std::string to_text(const Endpoint& endpoint);

}  // namespace starling::launch
