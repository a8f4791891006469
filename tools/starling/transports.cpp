#include "transports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "transport/ip/network.h"
#include "transport/loopback/loopback.h"
#include "transport/shm/shared_memory.h"

namespace starling {

namespace {

std::string shared_memory() {
    const int fd = memfd_create("starling-info", MFD_CLOEXEC);
    if (fd < 0) return std::string("not usable: memfd_create: ") + std::strerror(errno);
    close(fd);
    return "usable";
}

// Whether one process may read another's memory, as ranks of one job do: tried by a child on its parent.
std::string kernel_copy() {
    static volatile long secret = 0;
    secret = 4711;
    const pid_t child = fork();
    if (child < 0) return "unknown: no process could be started to try it";
    if (child == 0) {
        long seen = 0;
        iovec local{&seen, sizeof seen}, remote{const_cast<long*>(&secret), sizeof secret};
        if (process_vm_readv(getppid(), &local, 1, &remote, 1, 0) != sizeof seen) _exit(errno);
        _exit(seen == 4711 ? 0 : EIO);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) return "usable";
    return std::string("not usable (") + std::strerror(WEXITSTATUS(status)) +
           "): large messages are copied twice; kernel.yama.ptrace_scope=0 or CAP_SYS_PTRACE allow it";
}

std::string udp() {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return std::string("not usable: socket: ") + std::strerror(errno);
    close(fd);
    return "usable";
}

/// Whether a datagram to a group comes back to a member on the same interface. What lies between hosts only they can tell.
bool carries_multicast(const ifaddrs& interface) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const ip_mreqn group{{htonl(0xefc3fffe)}, {}, static_cast<int>(if_nametoindex(interface.ifa_name))};
    const timeval limit{0, 200'000};
    const uint8_t back = 1, hops = 0;  // it leaves no interface
    sockaddr_in any{}, to{};
    socklen_t length = sizeof any;
    any.sin_family = to.sin_family = AF_INET;
    char word[2] = "x";
    bool works = bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
                 getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length) == 0 &&
                 setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0 &&
                 setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof group) == 0 &&
                 setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &back, sizeof back) == 0 &&
                 setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) == 0 &&
                 setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0;
    to.sin_addr = group.imr_multiaddr;
    to.sin_port = any.sin_port;
    works = works && sendto(fd, word, 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 1 &&
            recv(fd, word, sizeof word, 0) == 1;
    close(fd);
    return works;
}

std::string multicast() {
    if (config().multicast == Multicast::off) return "off (STARLING_MULTICAST)";
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return std::string("not usable: ") + std::strerror(errno);
    std::string on, not_on;
    for (const ifaddrs* one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) ||
            !(one->ifa_flags & IFF_UP))
            continue;
        std::string& list = carries_multicast(*one) ? on : not_on;
        list += (list.empty() ? "" : ", ") + std::string(one->ifa_name);
    }
    freeifaddrs(all);
    if (on.empty() && not_on.empty()) return "not usable: no network interface is up";
    return (on.empty() ? "not usable" : "usable on " + on) + (not_on.empty() ? "" : "; " + not_on + ": no multicast") +
           "; groups of up to STARLING_MULTICAST_GROUPS communicators (docs/multicast.md)";
}

TransportReport of(const transport::Traits& traits, const std::string& state) {
    constexpr std::pair<transport::Can, const char*> kWords[] = {{transport::kSharesMemory, "kernel copies"},
                                                                 {transport::kConnections, "connections"},
                                                                 {transport::kStreams, "streams"},
                                                                 {transport::kRails, "several rails"},
                                                                 {transport::kRegions, "registered memory"},
                                                                 {transport::kGroups, "groups"}};
    std::string can;
    for (const auto& [bit, word] : kWords)
        if (traits.can & bit) can += (can.empty() ? "" : ", ") + std::string(word);
    return {traits.name, fmt::format("{}; {}; packets of up to {} KB, the short ones in about {} us; can: {}", state,
                                     traits.reaches, traits.payload / 1024, traits.latency_ns / 1000.0, can)};
}

}  // namespace

std::vector<TransportReport> transports() {
    return {of(loopback::kTraits, "a template, used in tests"),
            of(shm::kTraits, shared_memory()),
            of(ip::kTraits, udp()),
            {"multicast", multicast()},
            {"kernel copy (process_vm_readv)", kernel_copy()}};
}

}  // namespace starling
