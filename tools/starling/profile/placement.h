// Ranks to hosts, so that those that talk much share one. Scotch maps; what it leaves unbalanced or improvable is moved here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"

namespace starling::analysis {

struct HostRoom {
    std::string name;
    uint32_t ranks = 0;  ///< how many of them it takes
};

/// Rooms for exactly `size` ranks: in order as far as their slots go, as mpiexec fills them; in proportion if they are too few.
/// A host of 0 slots takes as many as the others that have none, evenly.
std::vector<HostRoom> rooms_for(std::vector<HostRoom> slots, uint32_t size);

/// What goes between hosts: bytes.
double bytes_between(const std::vector<Pair>& pairs, const std::vector<uint32_t>& host_of_rank);

/// Each rank's host, an index into `rooms`, whose ranks add up to `size`. The same input gives the same placement. Rank 0 is on
/// the first host that has as much room as its own would have.
std::vector<uint32_t> place(const std::vector<Pair>& pairs, uint32_t size, const std::vector<HostRoom>& rooms);

/// For mpiexec --rankfile.
std::string rank_file(const std::vector<uint32_t>& host_of_rank, const std::vector<HostRoom>& rooms);

}  // namespace starling::analysis
