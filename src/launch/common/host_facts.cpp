#include "launch/common/host_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "base/wire.h"
#include "job/interface_filter.h"
#include "job/job_segment.h"
#include "launch/common/hosts.h"
#include "mpi.h"

namespace starling::launch {

namespace {

// Returns the filter of STARLING_IP_INTERFACES. If it is invalid, returns one that admits all interfaces; the ranks report the error.
job::InterfaceFilter chosen_rails() {
    job::InterfaceFilter choice;
    if (job::InterfaceFilter::parse(config().ip_interfaces, choice) == MPI_SUCCESS) return choice;
    clear_failure();
    return {};
}

std::vector<OwnAddress> usable_addresses() {
    std::vector<OwnAddress> found;
    const job::InterfaceFilter choice = chosen_rails();
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const ifaddrs* a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP)) continue;
        const uint32_t address = reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr.s_addr;
        if (!choice.takes(a->ifa_name, address, a->ifa_flags & IFF_LOOPBACK)) continue;
        const uint32_t mask = a->ifa_netmask ? reinterpret_cast<const sockaddr_in*>(a->ifa_netmask)->sin_addr.s_addr : ~0u;
        found.push_back({address, mask, (a->ifa_flags & IFF_RUNNING) != 0});
    }
    freeifaddrs(all);
    return found;
}

}  // namespace

HostFacts own_identity() {
    HostFacts facts;
    facts.entry.id = job::this_host();
    std::snprintf(facts.entry.name, sizeof facts.entry.name, "%s", host_name().c_str());
    facts.cores = std::max(1u, job::usable_cores());
    facts.version = wire_version();
    return facts;
}

HostFacts own_facts(const std::vector<uint32_t>& others) {
    HostFacts facts = own_identity();
    choose_addresses(usable_addresses(), others, facts.entry);
    return facts;
}

void choose_addresses(std::vector<OwnAddress> own, const std::vector<uint32_t>& others, job::HostEntry& out) {
    // Container bridges have the same address on many hosts and lead to none of them. So an address of `others` that is also ours does not
    // count.
    const auto is_ours = [&](uint32_t address) {
        return std::any_of(own.begin(), own.end(), [&](const OwnAddress& one) { return one.address == address; });
    };
    const auto leads_to = [&](const OwnAddress& one) {
        return std::any_of(others.begin(), others.end(),
                           [&](uint32_t other) { return (other & one.mask) == (one.address & one.mask) && !is_ours(other); });
    };
    std::vector<std::pair<int, uint32_t>> rated;
    for (const OwnAddress& one : own) rated.emplace_back(one.running ? (leads_to(one) ? 0 : 1) : 2, one.address);
    std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    out.addresses = 0;
    for (const auto& [rank, address] : rated) {
        if (out.addresses < job::HostEntry::kMost) out.ipv4[out.addresses++] = address;
    }
    if (out.addresses == 0) out.ipv4[out.addresses++] = htonl(INADDR_LOOPBACK);
}

std::string encode(const HostFacts& facts) {
    Writer writer;
    // Roots of wire version 1.0 accept no further field, and a daemon does not know its root's version. They read a name up to its first zero
    // byte, so the version stands behind it.
    const std::string version = facts.version == kFirstWire ? "" : '\0' + Writer().number(facts.version).take();
    writer.number(facts.entry.id).string(facts.entry.name + version).number(facts.cores).number(facts.entry.addresses);
    for (uint32_t i = 0; i < facts.entry.addresses; ++i) writer.number(facts.entry.ipv4[i]);
    return writer.take();
}

bool decode(std::string_view bytes, HostFacts& out) {
    Reader reader(bytes);
    out.entry.id = reader.number<job::HostId>();
    const std::string name(reader.string());
    std::snprintf(out.entry.name, sizeof out.entry.name, "%s", name.c_str());
    out.version = kFirstWire;
    if (const size_t end = name.find('\0'); end != std::string::npos) {
        Reader version(std::string_view(name).substr(end + 1));
        out.version = version.number<uint32_t>();
        if (!version.done() || out.version == kFirstWire) return false;
    }
    out.cores = reader.number<uint32_t>();
    out.entry.addresses = reader.number<uint32_t>();
    if (out.entry.addresses > job::HostEntry::kMost) return false;
    for (uint32_t i = 0; i < out.entry.addresses; ++i) out.entry.ipv4[i] = reader.number<uint32_t>();
    return reader.done() && out.entry.id != 0 && out.cores > 0 && out.cores < 1u << 20;
}

}  // namespace starling::launch
