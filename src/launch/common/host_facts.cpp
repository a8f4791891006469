#include "launch/common/host_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/wire.h"
#include "job/job_segment.h"
#include "launch/common/hosts.h"

namespace starling::launch {

namespace {

bool is_chosen(std::string_view list, std::string_view interface, std::string_view address) {
    while (!list.empty()) {
        const size_t comma = list.find(',');
        const std::string_view one = list.substr(0, comma);
        if (one == interface || one == address) return true;
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
    return false;
}

void find_addresses(job::HostEntry& entry) {
    const char* chosen = std::getenv("STARLING_IP_INTERFACES");
    const std::string_view list = chosen ? chosen : "";
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    for (const ifaddrs* a = all; a && entry.addresses < job::HostEntry::kMost; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP)) continue;
        const in_addr address = reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr;
        char text[INET_ADDRSTRLEN] = "";
        inet_ntop(AF_INET, &address, text, sizeof text);
        const bool wanted = list.empty() ? !(a->ifa_flags & IFF_LOOPBACK) : is_chosen(list, a->ifa_name, text);
        if (wanted) entry.ipv4[entry.addresses++] = address.s_addr;
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
