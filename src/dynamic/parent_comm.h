// What a spawned job finds in its segment.
#pragma once

#include <cstdint>
#include <string>

namespace starling::dynamic {

struct Parents {
    uint64_t context = 0;
    uint32_t root = 0;  ///< rank in the group
    std::string group;
};

std::string encode(const Parents& parents);

/// Takes requests to connect from now on (port.cpp).
void start_ports();

}  // namespace starling::dynamic
