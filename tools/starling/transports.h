// What messages can travel on here.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct TransportReport {
    std::string name, state;
};

/// One entry per part of each transport, with whether this machine allows it.
std::vector<TransportReport> transports();

}  // namespace starling
