// The addresses on which daemons listen and to which they connect. IPv4 only.
#pragma once

#include <netinet/in.h>

#include <string>
#include <string_view>
#include <vector>

#include "launch/tree/messages.h"

namespace starling::launch {

/// Returns this machine's addresses on interfaces that are up. `filter` lists interfaces or addresses, separated by commas. If it is empty,
/// all interfaces except loopback are used, or loopback if it is the only one. Returns MPI_ERR_ARG and sets failure_text() if the filter
/// has an unknown name.
int own_addresses(std::string_view filter, std::vector<std::string>& out);

/// Returns `endpoints` sorted so that those in directly connected networks of this machine come first.
std::vector<DaemonAddress> nearest_first(std::vector<DaemonAddress> endpoints);

/// Returns the number of this machine's networks in which another machine with these addresses is too.
size_t count_shared_networks(const std::vector<std::string>& theirs);

/// Converts an endpoint for connect(). Returns false if its address is not an IPv4 address in digits.
bool socket_address(const DaemonAddress& endpoint, sockaddr_in& out);

/// Returns text such as "10.0.0.1 port 4711".
std::string to_text(const DaemonAddress& endpoint);

}  // namespace starling::launch
