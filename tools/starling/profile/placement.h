// Places ranks on hosts so that ranks with much traffic share a host. Scotch computes a mapping; this code then balances and improves it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"

namespace starling::analysis {

struct HostRoom {
    std::string name;
    uint32_t ranks = 0;  ///< number of ranks that the host gets
};

/// Returns rooms for exactly `size` ranks. The hosts' slots are filled in order, as mpiexec does; if they do not suffice, all are enlarged
/// in proportion. Hosts with 0 slots share the remaining ranks evenly.
std::vector<HostRoom> rooms_for(std::vector<HostRoom> slots, uint32_t size);

/// Returns the bytes that are sent between hosts.
double bytes_between(const std::vector<Pair>& pairs, const std::vector<uint32_t>& host_of_rank);

/// Returns each rank's host as an index into `rooms`, whose ranks add up to `size`. The result depends only on the input. Hosts of equal
/// room are in the order of their lowest ranks.
std::vector<uint32_t> place(const std::vector<Pair>& pairs, uint32_t size, const std::vector<HostRoom>& rooms);

/// Returns the text of a rank file for mpiexec --rankfile.
std::string rank_file(const std::vector<uint32_t>& host_of_rank, const std::vector<HostRoom>& rooms);

}  // namespace starling::analysis
