// The transports that messages can use on this machine.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct TransportReport {
    std::string name, state;
};

/// Returns the name of each transport, or of each of its parts, and whether it is usable on this machine.
std::vector<TransportReport> transports();

}  // namespace starling
