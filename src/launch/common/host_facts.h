// What a daemon tells of its host when it joins a universe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::launch {

struct HostFacts {
    job::HostEntry entry;  ///< id, name, addresses: as it goes into the jobs' host tables
    uint32_t cores = 1;    ///< that processes may use
};

/// Of this host, without its addresses, which nobody needs who meets no other host.
HostFacts own_identity();

/// All of it. Addresses are those of the interfaces that are up, without loopback unless there is nothing else;
/// STARLING_IP_INTERFACES chooses among them as it does for the host's processes (job/interface_filter.h). There is room for few, so
/// those come first that lie in a network of one of `others` (network byte order), then those that have a carrier.
HostFacts own_facts(const std::vector<uint32_t>& others = {});

struct OwnAddress {
    uint32_t address, mask;  ///< network byte order
    bool running;
};
void choose_addresses(std::vector<OwnAddress> own, const std::vector<uint32_t>& others, job::HostEntry& out);

std::string encode(const HostFacts& facts);
bool decode(std::string_view bytes, HostFacts& out);

}  // namespace starling::launch
