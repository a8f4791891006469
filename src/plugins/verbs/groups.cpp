#include "plugins/verbs/groups.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace starling::verbs {

namespace {

// A GID with an IPv4 address has it in its last four bytes.
sockaddr_storage socket_address(const uint8_t* gid) {
    sockaddr_storage storage = {};
    static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (std::memcmp(gid, kMapped, sizeof kMapped) == 0) {
        auto* address = reinterpret_cast<sockaddr_in*>(&storage);
        address->sin_family = AF_INET;
        std::memcpy(&address->sin_addr, gid + 12, 4);
    } else {
        auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
        address->sin6_family = AF_INET6;
        std::memcpy(&address->sin6_addr, gid, 16);
    }
    return storage;
}

// Returns the address by which librdmacm finds the port: its GID on RoCE, an address of its IPoIB interface on InfiniBand.
bool address_of(const PortFacts& facts, sockaddr_storage& out) {
    out = socket_address(facts.gid);
    if (facts.ethernet) return true;
    ifaddrs* all = nullptr;
    if (!facts.interface[0] || getifaddrs(&all) != 0) return false;
    bool found = false;
    for (const ifaddrs* one = all; one && !found; one = one->ifa_next) {
        found = one->ifa_addr && one->ifa_addr->sa_family == AF_INET && std::strcmp(one->ifa_name, facts.interface) == 0;
        if (found) std::memcpy(&out, one->ifa_addr, sizeof(sockaddr_in));
    }
    freeifaddrs(all);
    return found;
}

}  // namespace

GroupMembership::GroupMembership(Groups& groups, const uint8_t* gid) : groups_(groups), address_(socket_address(gid)) {
    std::memcpy(wanted_, gid, sizeof wanted_);
}

GroupMembership::~GroupMembership() { stop(); }

void GroupMembership::start() {
    state_ = MembershipState::joining;
    sockaddr_storage own;
    if (!groups_.channel) return failed("librdmacm cannot create an event channel: check access to /dev/infiniband/rdma_cm");
    if (!address_of(groups_.core.facts, own))
        return failed("the device has no IPoIB interface with an IPv4 address: give it one (ip address add)");
    if (rdma_create_id(groups_.channel, &id_, this, RDMA_PS_UDP) != 0) {
        id_ = nullptr;
        return failed(strerror(errno));
    }
    if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&own)) != 0) return failed(strerror(errno));
    if (rdma_join_multicast(id_, reinterpret_cast<sockaddr*>(&address_), this) != 0) return failed(strerror(errno));
    in_group_ = true;
}

void GroupMembership::joined(const rdma_ud_param& group) {
    gid_ = group.ah_attr.grh.dgid;
    lid_ = group.ah_attr.dlid;
    key_ = group.qkey;
    if (key_ != kQueueKey)
        return failed(
            "another program has created it with another Q_Key: set STARLING_MULTICAST_RANGE to addresses that no other "
            "program uses");
    attach();
}

void GroupMembership::attach() {
    if (!groups_.datagrams.pair()) return;
    const int error = ibv_attach_mcast(groups_.datagrams.pair(), &gid_, lid_);
    if (error) return failed(strerror(error));
    attached_ = true;
    state_ = MembershipState::ready;
}

void GroupMembership::failed(const char* why) {
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET6, wanted_, text, sizeof text);
    groups_.core.problem.describe("%s can't join the group %s: %s", groups_.core.facts.device, text, why);
    state_ = MembershipState::failed;
}

void GroupMembership::detach() {
    if (attached_) ibv_detach_mcast(groups_.datagrams.pair(), &gid_, lid_);
    attached_ = false;
}

void GroupMembership::stop() {
    detach();
    if (in_group_) rdma_leave_multicast(id_, reinterpret_cast<sockaddr*>(&address_));
    if (id_) rdma_destroy_id(id_);
    in_group_ = false;
    id_ = nullptr;
}

WorkStatus GroupMembership::send(const iovec* parts, int count) {
    if (state_ == MembershipState::failed) return WorkStatus::broken;
    if (state_ == MembershipState::joining) return WorkStatus::busy;
    VerbsAddress to;
    std::memcpy(to.gid, gid_.raw, sizeof to.gid);
    to.queue = kToGroup;
    to.key = key_;
    to.lid = lid_;
    return groups_.datagrams.send(to, parts, count);
}

void GroupMembership::leave() {
    groups_.forget(this);
    delete this;
}

bool Groups::make_channel() {
    if (channel) return true;
    channel = rdma_create_event_channel();
    if (!channel) return false;
    epoll_event event = {.events = EPOLLIN, .data = {}};
    if (fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0 &&
        epoll_ctl(wait_, EPOLL_CTL_ADD, channel->fd, &event) == 0)
        return true;
    rdma_destroy_event_channel(channel);
    channel = nullptr;
    return false;
}

PortMembership* Groups::join(const uint8_t* gid) {
    if (core.device_lost) return core.problem.describe("%s has been removed", core.facts.device), nullptr;
    make_channel();
    members_.reserve(members_.size() + 1);
    auto* member = new GroupMembership(*this, gid);
    members_.push_back(member);
    member->start();
    return member;
}

void Groups::check_groups() {
    rdma_cm_event* event = nullptr;
    while (channel && rdma_get_cm_event(channel, &event) == 0) {
        auto* member = static_cast<GroupMembership*>(event->id->context);
        const rdma_cm_event_type type = event->event;
        const int status = event->status;
        const rdma_ud_param group = event->param.ud;
        // The events of an identifier must be acknowledged before it is destroyed.
        rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_MULTICAST_JOIN) member->joined(group);
        if (type == RDMA_CM_EVENT_MULTICAST_ERROR) member->failed(status ? strerror(status < 0 ? -status : status) : "refused");
        if (type == RDMA_CM_EVENT_ADDR_CHANGE) join_again();
    }
}

void Groups::leave_queue() {
    for (GroupMembership* member : members_) member->detach();
}

void Groups::join_again() {
    for (GroupMembership* member : members_) {
        member->stop();
        member->start();
    }
}

void Groups::forget(GroupMembership* member) { std::erase(members_, member); }

void Groups::drop() {
    for (GroupMembership* member : members_) delete member;
    members_.clear();
    if (channel) rdma_destroy_event_channel(channel);
    channel = nullptr;
}

}  // namespace starling::verbs
