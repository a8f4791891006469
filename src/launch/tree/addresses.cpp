#include "launch/tree/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::launch {

namespace {

struct Interface {
    std::string name, address;
    in_addr_t network = 0, mask = 0;
    bool loopback = false, running = false;
};

int list_interfaces(std::vector<Interface>& found) {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0)
        return fail(MPI_ERR_OTHER, "cannot list this machine's network interfaces: %s%s", std::strerror(errno),
                    limit_remedy(errno));
    for (const ifaddrs* i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
        const in_addr address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
        Interface one;
        one.name = i->ifa_name;
        char text[INET_ADDRSTRLEN];
        one.address = inet_ntop(AF_INET, &address, text, sizeof text);
        if (i->ifa_netmask) one.mask = reinterpret_cast<const sockaddr_in*>(i->ifa_netmask)->sin_addr.s_addr;
        one.network = address.s_addr & one.mask;
        one.loopback = i->ifa_flags & IFF_LOOPBACK;
        one.running = i->ifa_flags & IFF_RUNNING;
        found.push_back(std::move(one));
    }
    freeifaddrs(list);
    // Some users take only the first few addresses. A bridge without a carrier leads nowhere, so it comes last.
    std::stable_partition(found.begin(), found.end(), [](const Interface& i) { return i.running; });
    return MPI_SUCCESS;
}

}  // namespace

int own_addresses(std::string_view filter, std::vector<std::string>& out) {
    out.clear();
    std::vector<Interface> all;
    if (const int error = list_interfaces(all); error != MPI_SUCCESS) return error;
    if (filter.empty()) {
        for (const bool loopback : {false, true}) {
            for (const Interface& i : all) {
                if (i.loopback == loopback && out.size() < 16) out.push_back(i.address);
            }
            if (!out.empty()) return MPI_SUCCESS;
        }
        return fail(
            MPI_ERR_OTHER,
            "this machine has no network interface that is up and has an IPv4 address, not even loopback; daemons need one");
    }
    while (!filter.empty()) {
        const size_t comma = std::min(filter.find(','), filter.size());
        const std::string wanted(filter.substr(0, comma));
        filter.remove_prefix(std::min(comma + 1, filter.size()));
        const size_t before = out.size();
        for (const Interface& i : all) {
            if (i.name == wanted || i.address == wanted) out.push_back(i.address);
        }
        if (out.size() > before || wanted.empty()) continue;
        std::string known;
        for (const Interface& i : all) known += (known.empty() ? "" : ", ") + i.name + " " + i.address;
        return fail(MPI_ERR_ARG,
                    "STARLING_DAEMON_INTERFACES names '%s', which is not up on this machine; these interfaces "
                    "are up: %s",
                    wanted.c_str(), known.c_str());
    }
    if (out.empty())
        return fail(MPI_ERR_ARG,
                    "STARLING_DAEMON_INTERFACES names no interface; list interfaces or addresses, "
                    "separated by commas, or unset it");
    return MPI_SUCCESS;
}

std::vector<DaemonAddress> nearest_first(std::vector<DaemonAddress> endpoints) {
    std::vector<Interface> own;
    list_interfaces(own);
    std::stable_partition(endpoints.begin(), endpoints.end(), [&](const DaemonAddress& e) {
        sockaddr_in address{};
        if (!socket_address(e, address)) return false;
        return std::any_of(own.begin(), own.end(),
                           [&](const Interface& i) { return (address.sin_addr.s_addr & i.mask) == i.network; });
    });
    return endpoints;
}

size_t count_shared_networks(const std::vector<std::string>& theirs) {
    std::vector<Interface> own;
    list_interfaces(own);
    return static_cast<size_t>(std::count_if(own.begin(), own.end(), [&](const Interface& i) {
        return std::any_of(theirs.begin(), theirs.end(), [&](const std::string& address) {
            in_addr other{};
            // Bridges of containers have the same address on all machines.
            return address != i.address && inet_pton(AF_INET, address.c_str(), &other) == 1 &&
                   (other.s_addr & i.mask) == i.network;
        });
    }));
}

bool socket_address(const DaemonAddress& endpoint, sockaddr_in& out) {
    out = {};
    out.sin_family = AF_INET;
    out.sin_port = htons(endpoint.port);
    return inet_pton(AF_INET, endpoint.address.c_str(), &out.sin_addr) == 1;
}

std::string to_text(const DaemonAddress& endpoint) { return endpoint.address + " port " + std::to_string(endpoint.port); }

}  // namespace starling::launch
