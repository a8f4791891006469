// Pairs of hardware threads, one for each kind of neighborhood on this machine, as hwloc describes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

struct CorePair {
    uint32_t cpus[2];       ///< the operating system's numbers
    std::string placement;  ///< the smallest part of the machine that contains both, such as "one L3 cache"
};

/// Returns the first pair of each kind among the hardware threads that this process may use, nearest first. Sets `problem` to a sentence if
/// there is no pair.
std::vector<CorePair> core_pairs(std::string& problem);

}  // namespace starling
