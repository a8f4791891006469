// The transports that messages can use on this machine.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct TransportReport {
    std::string name, state;
};

/// Returns one entry per part of each transport, with whether it is usable on this machine.
std::vector<TransportReport> transports();

}  // namespace starling
