#include "transport/network/datagram/rails.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::network {

namespace {

uint32_t mtu_of(int fd, const char* name) {
    ifreq request{};
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 1500;
}

}  // namespace

Rails::~Rails() {
    if (netlink_ >= 0) close(netlink_);
}

int Rails::open(const InterfaceFilter& choice) {
    choice_ = choice;
    // Subscribe before reading the interfaces, so that no change is missed. Without a subscription (in a sandbox) the list of rails never
    // changes.
    netlink_ = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    sockaddr_nl groups{};
    groups.nl_family = AF_NETLINK;
    groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR;
    if (netlink_ >= 0 && bind(netlink_, reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) {
        close(netlink_);
        netlink_ = -1;
    }
    read();
    if (usable() > 0) return MPI_SUCCESS;
    if (!choice_.any())
        return fail(MPI_ERR_OTHER, "no interface that is up matches STARLING_IP_INTERFACES; `ip -4 addr` lists the interfaces");
    return fail(MPI_ERR_OTHER, "this host has no network interface that is up and has an IPv4 address");
}

uint16_t Rails::usable() const {
    uint16_t n = 0;
    for (uint16_t i = 0; i < count_; ++i) n = static_cast<uint16_t>(n + rails_[i].usable);
    return n;
}

bool Rails::refresh() {
    if (netlink_ < 0) return false;
    char messages[8192];
    bool any = false;
    for (int i = 0; i < kMostMessages; ++i) {
        const ssize_t n = recv(netlink_, messages, sizeof messages, MSG_DONTWAIT);
        if (n > 0 || (n < 0 && errno == ENOBUFS))
            any = true;  // an overrun (ENOBUFS) counts as a change: read() finds all changes
        else if (n >= 0 || errno != EINTR)
            break;
    }
    return any && read();
}

// Reads all interfaces again, whatever netlink reported, since netlink messages may have been lost.
bool Rails::read() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return false;
    const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    Rail now[kMost];
    uint16_t count = 0;
    bool others = false;
    for (const bool loopback : {false, true}) {
        if (loopback && others && choice_.any()) break;
        for (const ifaddrs* one = list; one && count < kMost; one = one->ifa_next) {
            if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !one->ifa_netmask) continue;
            if (((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
            Rail rail;
            std::snprintf(rail.name, sizeof rail.name, "%s", one->ifa_name);
            rail.address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
            rail.netmask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr;
            rail.loopback = loopback;
            rail.usable = (one->ifa_flags & IFF_UP) && (one->ifa_flags & IFF_RUNNING);
            if (!choice_.any() ? !choice_.takes(rail.name, rail.address, loopback) : loopback && others) continue;
            rail.index = if_nametoindex(rail.name);
            rail.mtu = mtu_of(probe, rail.name);
            others |= rail.usable;
            now[count++] = rail;
        }
    }
    if (probe >= 0) close(probe);
    freeifaddrs(list);
    const bool changed = note_lost(now, count) | note_all(now, count);
    version_ += changed;
    return changed;
}

bool Rails::note_lost(const Rail* now, uint16_t count) {
    bool changed = false;
    for (uint16_t i = 0; i < count_; ++i) {
        if (!rails_[i].usable || std::any_of(now, now + count, [&](const Rail& one) { return one.is(rails_[i]); })) continue;
        rails_[i].usable = false;
        changed = true;
    }
    return changed;
}

bool Rails::note_all(const Rail* now, uint16_t count) {
    bool changed = false;
    for (uint16_t i = 0; i < count; ++i) changed |= note(now[i]);
    return changed;
}

bool Rails::note(const Rail& seen) {
    for (uint16_t i = 0; i < count_; ++i) {
        Rail& rail = rails_[i];
        if (!rail.is(seen)) continue;
        const bool same =
            rail.index == seen.index && rail.netmask == seen.netmask && rail.mtu == seen.mtu && rail.usable == seen.usable;
        rail.index = seen.index;
        rail.netmask = seen.netmask;
        rail.mtu = seen.mtu;
        rail.usable = seen.usable;
        return !same;
    }
    // Reuse the entry of a rail that is no longer usable: an interface may have had many addresses.
    Rail* const place = count_ < kMost ? &rails_[count_++]
                                       : std::find_if(rails_, rails_ + kMost, [](const Rail& rail) { return !rail.usable; });
    if (place == rails_ + kMost) return false;
    *place = seen;
    return seen.usable;
}

uint16_t Rails::by_index(uint32_t index) const {
    for (uint16_t i = 0; i < count_; ++i)
        if (rails_[i].index == index && rails_[i].usable) return i;
    return kRouted;
}

bool Rails::is_own(uint32_t address) const {
    for (uint16_t i = 0; i < count_; ++i)
        if (rails_[i].usable && rails_[i].address == address) return true;
    return false;
}

uint16_t Rails::towards(uint32_t address, uint32_t used) const {
    uint16_t best = kRouted;
    for (uint16_t i = 0; i < count_; ++i) {
        const Rail& rail = rails_[i];
        if (!rail.usable || ((rail.address ^ address) & rail.netmask) != 0) continue;
        if (!(used >> i & 1)) return i;
        if (best == kRouted) best = i;
    }
    return best;
}

}  // namespace starling::network
