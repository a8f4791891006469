#include "networks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <bit>

#include "base/config.h"
#include "base/error.h"
#include "job/interface_filter.h"
#include "mpi.h"

namespace starling {

namespace {
uint32_t address_of(const sockaddr* address) { return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr; }
}  // namespace

std::vector<NetworkReport> networks() {
    std::vector<NetworkReport> found;
    job::InterfaceFilter choice;
    const bool valid = job::InterfaceFilter::parse(config().ip_interfaces, choice) == MPI_SUCCESS;
    if (!valid) fmt::print(stderr, "starling: {}\n", failure_text());
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const ifaddrs* one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP)) continue;
        const uint32_t address = address_of(one->ifa_addr), mask = one->ifa_netmask ? address_of(one->ifa_netmask) : ~0u;
        char text[INET_ADDRSTRLEN] = "";
        inet_ntop(AF_INET, &address, text, sizeof text);
        found.push_back({one->ifa_name, fmt::format("{}/{}", text, std::popcount(mask)), (one->ifa_flags & IFF_RUNNING) != 0,
                         valid && choice.takes(one->ifa_name, address, one->ifa_flags & IFF_LOOPBACK)});
    }
    freeifaddrs(all);
    return found;
}

}  // namespace starling
