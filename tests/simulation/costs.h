// Reads a cost file: JSON with the figures of costs.def, each as {"value": NUMBER, "source": "where the figure comes from"}, in sections.
// "name" and "about" are texts. The sections `ud`, `rc`, `ring` and `rdma` are null if the hosts have no InfiniBand devices; `cache` is
// null if devices remember any number of connections, and `switches` if all hosts share one switch.
#pragma once

#include <string>
#include <string_view>

#include "prices.h"

namespace starling::simulation {

/// Parses the text of a cost file. Returns an empty text, or a sentence with the error and its place; `out` is unspecified then.
std::string parse_costs(std::string_view text, Prices& out);

/// Reads the file. Returns an empty text, or a sentence with the file's name and the error.
std::string read_costs(const std::string& path, Prices& out);

/// Returns the least time in which an action of one process can reach another, also on the same host if `shares_hosts`. A process's clock
/// may lead by less.
uint64_t least_latency(const Prices& of, bool shares_hosts);

}  // namespace starling::simulation
