// Which members of a file are aggregators in collective transfers, from their hosts and the hints cb_nodes and cb_config_list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::file {

/// Returns the aggregators: those that are first on their hosts before the second ones of their hosts, and so on. There is at least one.
/// `host_of`: the number of each member's host; `names`: the hosts' names. `wanted`: the hint cb_nodes, 0: one per host. `placement`: the
/// hint cb_config_list, a list of `HOST:MOST` or `*:MOST`, of which MOST may be `*` or missing (1); empty: every host. The first entry for a
/// host is valid. If no host of the list has members, the list has no effect.
std::vector<int> choose_aggregators(const std::vector<int>& host_of, const std::vector<std::string>& names, int wanted,
                                    std::string_view placement);

/// Returns whether a placement names hosts, so that the choice depends on the hosts' names.
bool names_hosts(std::string_view placement);

}  // namespace starling::file
