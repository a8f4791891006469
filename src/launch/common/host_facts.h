// The facts that a daemon reports about its host when it joins a universe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "job/job_description.h"

namespace starling::launch {

struct HostFacts {
    job::HostEntry entry;  ///< id, name and addresses, as in the jobs' host tables
    uint32_t cores = 1;    ///< number of cores that processes may use
    uint32_t version = kFirstWire;  ///< wire version of the daemon there
};

/// Returns the facts of this host without addresses, which suffices in a universe of one host.
HostFacts own_identity();

/// Returns all facts of this host. Its addresses are those of the interfaces that are up, without loopback unless there is no other.
/// STARLING_IP_INTERFACES selects among them, as it does for the host's processes (job/interface_filter.h). The host table has room for
/// only a few. So addresses in the network of one of `others` (network byte order) come first, then those of interfaces with a carrier.
HostFacts own_facts(const std::vector<uint32_t>& others = {});

struct OwnAddress {
    uint32_t address, mask;  ///< IPv4 address and netmask, network byte order
    bool running;
};
void choose_addresses(std::vector<OwnAddress> own, const std::vector<uint32_t>& others, job::HostEntry& out);

std::string encode(const HostFacts& facts);
/// Accepts the facts of daemons of wire version 1.0, which have no version.
bool decode(std::string_view bytes, HostFacts& out);

}  // namespace starling::launch
