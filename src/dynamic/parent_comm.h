// The description of the parents that a spawned job finds in its segment.
#pragma once

#include <cstdint>
#include <string>

namespace starling::dynamic {

struct Parents {
    uint64_t context = 0;
    uint32_t root = 0;  ///< rank of the spawn's root in the parents' group
    std::string group;
};

std::string encode(const Parents& parents);

/// Starts to handle connect requests to this process's ports (port.cpp).
void start_ports();

}  // namespace starling::dynamic
