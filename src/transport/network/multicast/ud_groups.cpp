// Multicast groups on InfiniBand and RoCE: the datagram queue of a port joins the same addresses. Only missing datagrams at a member show
// that a port can't reach a group. The member's report makes the sender (report_unreachable) use the next rail, which is another port or
// UDP.
#include <cstring>

#include "base/counters.h"
#include "transport/network/multicast/udp_groups.h"

namespace starling::network {

// Joins the group on all ports, with its IPv4 address as a GID.
void GroupSockets::enter_ports(uint32_t address, JoinedAddress& by) {
    uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(gid + 12, &address, sizeof address);
    for (uint16_t i = 0; ports_ && i < verbs::Ports::kMost; ++i) {
        if (by.by_port[i] || !ports_->usable(i)) continue;
        verbs::Port& port = *ports_->port(i);
        if (port.datagram_limit() >= kDatagram) by.by_port[i] = port.join(gid);
    }
}

void GroupSockets::leave_ports(JoinedAddress& by) {
    for (verbs::PortMembership*& one : by.by_port) {
        if (one) one->leave();
        one = nullptr;
    }
}

// Updates the memberships after a port was added or removed, or has another address. Failed memberships are tried again; those that were
// ready are renewed by the port itself.
void GroupSockets::follow_ports() {
    ports_seen_ = ports_->version();
    for (auto& [address, by] : addresses_) {
        for (verbs::PortMembership*& one : by.by_port) {
            if (!one || one->state() != verbs::PortMembership::MembershipState::failed) continue;
            one->leave();
            one = nullptr;
        }
        enter_ports(address, by);
    }
}

void GroupSockets::closing(uint16_t place) {
    for (auto& [address, by] : addresses_) {
        if (by.by_port[place]) by.by_port[place]->leave();
        by.by_port[place] = nullptr;
    }
}

verbs::PortMembership* GroupSockets::ready(const JoinedAddress& by, uint16_t place) const {
    verbs::PortMembership* const one = by.by_port[place];
    return one && ports_->usable(place) && one->state() == verbs::PortMembership::MembershipState::ready ? one : nullptr;
}

uint32_t GroupSockets::ready_ports(const GroupMember& member) const {
    uint32_t count = 0;
    if (!ports_) return 0;
    const JoinedAddress& by = addresses_.at(member.address_);
    for (uint16_t i = 0; i < verbs::Ports::kMost; ++i) count += ready(by, i) != nullptr;
    return count;
}

/// Returns the port membership by which the member sends; null if a socket is to be used.
verbs::PortMembership* GroupSockets::port_for(const GroupMember& member) const {
    const uint32_t count = ready_ports(member);
    if (count == 0) [[likely]]
        return nullptr;
    uint32_t skip = member.tries_ % (count + rails_.usable());
    if (skip >= count) return nullptr;
    const JoinedAddress& by = addresses_.at(member.address_);
    for (uint16_t i = 0; i < verbs::Ports::kMost; ++i)
        if (verbs::PortMembership* const one = ready(by, i); one && skip-- == 0) return one;
    return nullptr;
}

verbs::WorkStatus GroupSockets::send_by_port(const GroupMember& member, verbs::PortMembership& port, const iovec* parts,
                                             int count) {
    std::byte datagram[kDatagram];
    const iovec whole{datagram, member.seal(datagram, parts, count)};
    const verbs::WorkStatus status = port.send(&whole, 1);
    if (status != verbs::WorkStatus::done) return status;
    ++counters.datagrams_group_sent;
    ++counters.datagrams_group_verbs;
    return status;
}

bool GroupSockets::handle_from_port(const std::byte* data, size_t bytes) {
    uint64_t key = 0;
    if (bytes <= sizeof key) return false;
    std::memcpy(&key, data, sizeof key);
    if (!members_.contains(key)) return false;
    std::byte datagram[kDatagram];
    if (bytes > sizeof datagram) return false;
    std::memcpy(datagram, data, bytes);
    handle(datagram, bytes);
    return true;
}

}  // namespace starling::network
