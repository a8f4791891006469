#include "launch/common/host_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "base/wire.h"
#include "job/job_segment.h"
#include "job/rail_choice.h"
#include "launch/common/hosts.h"
#include "mpi.h"

namespace starling::launch {

namespace {

// What can't be read the ranks complain about; for the host's address all interfaces are taken then.
job::RailChoice chosen_rails() {
    job::RailChoice choice;
    if (job::RailChoice::parse(config().ip_interfaces, choice) == MPI_SUCCESS) return choice;
    clear_failure();
    return {};
}

void find_addresses(job::HostEntry& entry) {
    const job::RailChoice choice = chosen_rails();
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    for (const ifaddrs* a = all; a && entry.addresses < job::HostEntry::kMost; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP)) continue;
        const uint32_t address = reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr.s_addr;
        if (choice.takes(a->ifa_name, address, a->ifa_flags & IFF_LOOPBACK)) entry.ipv4[entry.addresses++] = address;
    }
    freeifaddrs(all);
    if (entry.addresses == 0) entry.ipv4[entry.addresses++] = htonl(INADDR_LOOPBACK);
}

}  // namespace

HostFacts own_identity() {
    HostFacts facts;
    facts.entry.id = job::this_host();
    std::snprintf(facts.entry.name, sizeof facts.entry.name, "%s", host_name().c_str());
    facts.cores = std::max(1u, job::usable_cores());
    return facts;
}

HostFacts own_facts() {
    HostFacts facts = own_identity();
    find_addresses(facts.entry);
    return facts;
}

std::string encode(const HostFacts& facts) {
    Writer writer;
    writer.number(facts.entry.id).string(facts.entry.name).number(facts.cores).number(facts.entry.addresses);
    for (uint32_t i = 0; i < facts.entry.addresses; ++i) writer.number(facts.entry.ipv4[i]);
    return writer.take();
}

bool decode(std::string_view bytes, HostFacts& out) {
    Reader reader(bytes);
    out.entry.id = reader.number<job::HostId>();
    const std::string name(reader.string());
    std::snprintf(out.entry.name, sizeof out.entry.name, "%s", name.c_str());
    out.cores = reader.number<uint32_t>();
    out.entry.addresses = reader.number<uint32_t>();
    if (out.entry.addresses > job::HostEntry::kMost) return false;
    for (uint32_t i = 0; i < out.entry.addresses; ++i) out.entry.ipv4[i] = reader.number<uint32_t>();
    return reader.done() && out.entry.id != 0 && out.cores > 0 && out.cores < 1u << 20;
}

}  // namespace starling::launch
