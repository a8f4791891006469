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

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/loopback/loopback.h"
#include "transport/network/network.h"
#include "transport/shm/shared_memory.h"
#include "transport/verbs/plugin.h"
#include "transport/verbs/ports.h"

namespace starling {

namespace {

std::string shared_memory() {
    const int fd = memfd_create("starling-info", MFD_CLOEXEC);
    if (fd < 0) return std::string("not usable: memfd_create: ") + std::strerror(errno);
    close(fd);
    return "usable";
}

// Reports whether one process may read another's memory, as ranks of one job do. A child process tries to read its parent's.
std::string kernel_copy() {
    static volatile long secret = 0;
    secret = 4711;
    const pid_t child = fork();
    if (child < 0) return "unknown: cannot start a process to try it";
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

/// Returns whether a datagram to a group is returned to a member on the same interface. Whether the network between hosts passes it can
/// only be found out with several hosts.
bool carries_multicast(const ifaddrs& interface) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const ip_mreqn group{{htonl(0xefc3fffe)}, {}, static_cast<int>(if_nametoindex(interface.ifa_name))};
    const timeval limit{0, 200'000};
    const uint8_t back = 1, hops = 0;  // the datagram must not leave the host
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

/// Describes a port, and whether a process here would use it; opens the port to find out.
std::string state_of(const verbs::Plugin& plugin, const verbs::DeviceChoice& choice, const verbs::PortFacts& facts, int& used) {
    char gid[INET6_ADDRSTRLEN] = "";
    inet_ntop(AF_INET6, facts.gid, gid, sizeof gid);
    std::string what =
        facts.ethernet ? fmt::format("RoCE on {}", facts.interface) : fmt::format("InfiniBand, LID {}", facts.lid);
    what += fmt::format(", link {}, MTU {}, GID {} (index {}), pkey {:#06x}", facts.active ? "up" : "down", facts.mtu, gid,
                        facts.gid_index, facts.pkey);
    if (!choice.takes(facts.device, facts.port)) return "not used: not among STARLING_VERBS_DEVICES; " + what;
    if (facts.why_not[0] != '\0') return fmt::format("not usable: {}; {}", facts.why_not, what);
    if (!facts.active) return "not usable: its link is down; " + what;
    if (used == verbs::Ports::kMost)
        return fmt::format("not used: a process uses {} ports at most; {}", verbs::Ports::kMost, what);
    char problem[512] = "";
    const verbs::DeviceOptions options = verbs::configured_options();
    verbs::Port* const port = plugin.open(&facts, &options, problem, sizeof problem);
    if (!port) return fmt::format("not usable: {}; {}", problem, what);
    const verbs::PortCounters counters = port->counters();
    ++used;
    what += fmt::format("; datagrams of {} bytes, {} KB locked in memory", port->datagram_limit(),
                        counters.registered_bytes / 1024);
    port->close();
    return "used; " + what;
}

void add_verbs(std::vector<TransportReport>& to) {
    const auto say = [&to](const std::string& state) { to.push_back({"verbs", state}); };
    if (config().verbs == VerbsUse::off) return say("off (STARLING_VERBS)");
    if (!verbs::has_device()) return say("not usable: the kernel knows no InfiniBand or RoCE device (`rdma link` lists them)");
    verbs::DeviceChoice choice;
    if (verbs::DeviceChoice::parse(config().verbs_devices, choice) != MPI_SUCCESS)
        return say("not usable: " + std::string(failure_text()));
    const verbs::Plugin* const plugin = verbs::load_plugin();
    if (!plugin) return say("not usable: " + std::string(failure_text()));
    std::vector<verbs::PortFacts> ports(64);
    const verbs::DeviceOptions options = verbs::configured_options();
    const int count =
        std::min<int>(plugin->list(ports.data(), static_cast<int>(ports.size()), &options), static_cast<int>(ports.size()));
    if (count == 0)
        say("not usable: no device has a port that can be seen (are there /dev/infiniband/uverbs*, for this user?)");
    int used = 0;
    for (int i = 0; i < count; ++i) {
        const verbs::PortFacts& facts = ports[static_cast<size_t>(i)];
        to.push_back({fmt::format("verbs {}:{}", facts.device, facts.port), state_of(*plugin, choice, facts, used)});
    }
}

TransportReport of(const transport::Traits& traits, const std::string& state) {
    constexpr std::pair<transport::Capability, const char*> kWords[] = {{transport::kSharesMemory, "kernel copies"},
                                                                        {transport::kConnections, "connections"},
                                                                        {transport::kStreams, "streams"},
                                                                        {transport::kRails, "several rails"},
                                                                        {transport::kRegions, "registered memory"},
                                                                        {transport::kGroups, "groups"}};
    std::string can;
    for (const auto& [bit, word] : kWords)
        if (traits.capabilities & bit) can += (can.empty() ? "" : ", ") + std::string(word);
    return {traits.name, fmt::format("{}; {}; packets of up to {} KB, the short ones in about {} us; can: {}", state,
                                     traits.reaches, traits.payload / 1024, traits.latency_ns / 1000.0, can)};
}

}  // namespace

std::vector<TransportReport> transports() {
    std::vector<TransportReport> all{of(shm::kTraits, shared_memory()), of(network::kTraits, udp())};
    add_verbs(all);
    all.push_back({"multicast", multicast()});
    all.push_back({"kernel copy (process_vm_readv)", kernel_copy()});
    all.push_back(of(loopback::kTraits, "a template, used in tests"));
    return all;
}

}  // namespace starling
