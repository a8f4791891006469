// The choice of each process's partner, which keeps the second copy of its blocks.
#pragma once

#include <vector>

namespace starling::keep {

/// Returns each rank's partner, given each rank's host; -1 if there is only one rank. Partners are on other hosts if there are several hosts.
/// Every rank is the partner of exactly one, unless a host has more than half of the ranks.
std::vector<int> partners_of(const std::vector<int>& hosts);

}  // namespace starling::keep
