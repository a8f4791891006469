#include "transport/network/multicast/udp_groups.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/multicast_groups.h"
#include "transport/network/datagram/udp.h"

namespace starling::network {

namespace {

constexpr uint64_t kRailsIntervalNs = 100'000'000;

template <class T>
bool set(int fd, int option, const T& value) {
    return setsockopt(fd, IPPROTO_IP, option, &value, sizeof value) == 0;
}

}  // namespace

int GroupRange::parse(const char* text, GroupRange& out) {
    const char* const slash = std::strchr(text, '/');
    char address[INET_ADDRSTRLEN] = {};
    const size_t length = slash ? static_cast<size_t>(slash - text) : std::strlen(text);
    if (length < sizeof address) std::memcpy(address, text, length);
    in_addr parsed{};
    char* end = nullptr;
    const unsigned long network = slash ? std::strtoul(slash + 1, &end, 10) : 32;
    const bool number = !slash || (slash[1] >= '0' && slash[1] <= '9' && *end == '\0');
    if (inet_pton(AF_INET, address, &parsed) != 1 || !number || network < 8 || network > 32)
        return fail(MPI_ERR_ARG, "STARLING_MULTICAST_RANGE: '%s' is not an IPv4 network; write for example 239.192.0.0/14",
                    text);
    out.bits = 32 - static_cast<uint32_t>(network);
    const uint32_t mask = (uint32_t{1} << out.bits) - 1;
    out.first = ntohl(parsed.s_addr) & ~mask;
    if (out.first >> 24 != 239)
        return fail(MPI_ERR_ARG, "STARLING_MULTICAST_RANGE: '%s' is not within 239.0.0.0/8, the groups that stay within a site",
                    text);
    return MPI_SUCCESS;
}

uint32_t GroupRange::address(uint64_t place) const {
    const uint32_t mask = (uint32_t{1} << bits) - 1;
    return htonl(first | (static_cast<uint32_t>(place ^ place >> 32) & mask));
}

/// Receive buffers, allocated with the first group.
struct GroupSockets::GroupReceiveBatch {
    alignas(64) std::byte data[kBatch][kRoom];
    iovec parts[kBatch];
    mmsghdr messages[kBatch];
    alignas(cmsghdr) std::byte control[kBatch][CMSG_SPACE(sizeof(int))];
};

GroupMember::GroupMember(GroupSockets& by, const transport::GroupName& name, uint32_t address, GroupEncryption& seal,
                         transport::DatagramHandler& audience)
    : by_(by), name_(name), address_(address), seal_(seal), audience_(audience), tries_(by.tries_) {}

void GroupMember::report_unreachable() {
    flush();
    by_.tries_ = ++tries_;
}

GroupMember::~GroupMember() { by_.leave(*this); }

bool GroupMember::send(const iovec* parts, int count) { return by_.send(*this, parts, count); }

void GroupMember::flush() { by_.flush(); }

GroupSockets::GroupSockets(int epoll, uint32_t bit, verbs::Ports* ports)
    : epoll_(epoll), bit_(bit), ports_(ports), ports_seen_(ports ? ports->version() : 0) {
    std::fill(std::begin(sockets_), std::end(sockets_), -1);
}

GroupSockets::~GroupSockets() {
    for (auto& [address, by] : addresses_) leave_ports(by);
    for (uint16_t i = 0; i < rails_.count(); ++i)
        if (sockets_[i] >= 0) close_socket(i);
}

// Removes the socket from epoll first: a forked child of the program may have the descriptor too, and events would continue.
void GroupSockets::close_socket(uint16_t rail) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, sockets_[rail], nullptr);
    close(std::exchange(sockets_[rail], -1));
}

int GroupSockets::open() {
    if (const int error = GroupRange::parse(config().multicast_range ? config().multicast_range : "239.192.0.0/14", range_))
        return error;
    if (const int error = Cipher::load(cipher_, "STARLING_MULTICAST")) return error;
    InterfaceFilter choice;
    if (const int error = InterfaceFilter::parse(config().ip_interfaces, choice)) return error;
    if (const int error = rails_.open(choice)) return error;
    in_ = std::make_unique<GroupReceiveBatch>();
    run_ = std::make_unique<DatagramRun>();
    for (uint16_t i = 0; i < rails_.count(); ++i)
        if (rails_[i].usable)
            if (const int error = open_socket(i)) return error;
    return MPI_SUCCESS;
}

int GroupSockets::open_socket(uint16_t rail) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail(MPI_ERR_OTHER, "cannot open a socket for multicast groups: %s", std::strerror(errno));
    const int one = 1;
    const uint8_t hops = static_cast<uint8_t>(config().multicast_ttl);
    const ip_mreqn by{{}, {}, static_cast<int>(rails_[rail].index)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    set_buffer_sizes(fd);  // a slow cable holds a whole window of datagrams in the send buffer; what does not fit is lost
    setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof one);  // UDP_GRO is optional: an older kernel delivers datagrams one by one
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<uint16_t>(config().multicast_port));
    // Leaders on one host are never members of the same group, so no loopback is needed, except on the loopback device.
    const uint8_t back = rails_[rail].loopback;
    if (!set(fd, IP_MULTICAST_ALL, 0) || !set(fd, IP_MULTICAST_TTL, hops) || !set(fd, IP_MULTICAST_LOOP, back) ||
        !set(fd, IP_MULTICAST_IF, by) || bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
        const int error = errno;
        close(fd);
        return fail(MPI_ERR_OTHER, "cannot open a multicast socket on interface %s, port %d (STARLING_MULTICAST_PORT): %s",
                    rails_[rail].name, static_cast<int>(config().multicast_port), std::strerror(error));
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = bit_;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    sockets_[rail] = fd;
    interfaces_[rail] = rails_[rail].index;
    return MPI_SUCCESS;
}

/// Joins an address on one rail; returns 0 or errno.
int GroupSockets::enter(uint16_t rail, uint32_t address) {
    const ip_mreqn group{{address}, {}, static_cast<int>(rails_[rail].index)};
    return set(sockets_[rail], IP_ADD_MEMBERSHIP, group) || errno == EADDRINUSE ? 0 : errno;
}

int GroupSockets::join(const transport::GroupName& name, transport::DatagramHandler& audience,
                       std::unique_ptr<transport::MulticastMembership>& out) {
    const uint32_t address = range_.address(name.place);
    if (members_.contains(name.key)) {
        return fail(MPI_ERR_INTERN,
                    "this process is already a member of multicast group %llx; report this as a bug of Starling",
                    static_cast<unsigned long long>(name.key));
    }
    int error = ENODEV;
    for (uint16_t i = 0; i < rails_.count(); ++i)
        if (sockets_[i] >= 0 && rails_[i].usable)
            if (const int why = enter(i, address); why == 0 || error != 0) error = why;
    if (error != 0) {
        char text[INET_ADDRSTRLEN];
        return fail(MPI_ERR_OTHER, "can't join multicast group %s: %s", inet_ntop(AF_INET, &address, text, sizeof text),
                    error == ENOBUFS ? "the kernel's limit of groups is reached (net.ipv4.igmp_max_memberships)"
                                     : std::strerror(error));
    }
    auto member = std::make_unique<GroupMember>(*this, name, address, seal_for(name), audience);
    members_.emplace(name.key, member.get());
    JoinedAddress& by = addresses_[address];
    if (by.users++ == 0) enter_ports(address, by);
    out = std::move(member);
    return MPI_SUCCESS;
}

GroupEncryption& GroupSockets::seal_for(const transport::GroupName& name) {
    if (seals_.size() >= kMostSeals) std::erase_if(seals_, [this](const auto& seal) { return !members_.contains(seal.first); });
    std::unique_ptr<GroupEncryption>& seal = seals_[name.key];
    if (!seal) seal = std::make_unique<GroupEncryption>(*cipher_, name.secret);
    return *seal;
}

void GroupSockets::leave(GroupMember& member) {
    flush();
    members_.erase(member.name_.key);
    const auto found = addresses_.find(member.address_);
    if (--found->second.users > 0) return;
    leave_ports(found->second);
    addresses_.erase(found);
    for (uint16_t i = 0; i < rails_.count(); ++i)
        if (sockets_[i] >= 0)
            set(sockets_[i], IP_DROP_MEMBERSHIP, ip_mreqn{{member.address_}, {}, static_cast<int>(rails_[i].index)});
}

// Joins all addresses on interfaces that are up again; sending skips those that are down.
void GroupSockets::follow_rails(uint64_t now) {
    rails_at_ = now + kRailsIntervalNs;
    if (!rails_.refresh()) return;
    for (uint16_t i = 0; i < rails_.count(); ++i) {
        if (!rails_[i].usable) continue;
        if (sockets_[i] >= 0 && interfaces_[i] != rails_[i].index) close_socket(i);
        if (sockets_[i] < 0 && open_socket(i) != MPI_SUCCESS) continue;
        for (const auto& [address, by] : addresses_) enter(i, address);
    }
    clear_failure();
}

/// Returns the socket by which the member sends. Returns -1 if no rail is usable; the datagram is then lost, as on a broken link.
int GroupSockets::socket_for(const GroupMember& member) const {
    const uint16_t usable = rails_.usable();
    if (usable == 0) return -1;
    const uint32_t ports = ready_ports(member), place = member.tries_ % (ports + usable);
    // After a port has refused the datagram, the socket at the same index is used.
    uint32_t skip = (place >= ports ? place - ports : place) % usable;
    uint16_t rail = 0;
    while (!rails_[rail].usable || skip-- > 0) ++rail;
    return sockets_[rail];
}

bool GroupSockets::send(GroupMember& member, const iovec* parts, int count) {
    if (verbs::PortMembership* const port = port_for(member)) [[unlikely]] {
        const verbs::WorkStatus status = send_by_port(member, *port, parts, count);
        if (status == verbs::WorkStatus::done || status == verbs::WorkStatus::busy) return status == verbs::WorkStatus::done;
    }
    size_t bytes = sizeof member.name_.key + kSealBytes;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    DatagramRun& run = *run_;
    if (run.count > 0 && (run.to != &member || run.ended || run.count == kMostRun || bytes > run.piece)) flush();
    if (run.count == 0) run.piece = bytes;
    run.to = &member;
    run.ended = bytes < run.piece;
    ++run.count;
    run.bytes += member.seal(run.data + run.bytes, parts, count);
    return true;
}

/// Writes a sealed datagram to `to`; returns its length.
size_t GroupMember::seal(std::byte* to, const iovec* parts, int count) const {
    std::memcpy(to, &name_.key, sizeof name_.key);
    size_t bytes = sizeof name_.key;
    for (int i = 0; i < count; ++i) {
        std::memcpy(to + bytes, parts[i].iov_base, parts[i].iov_len);
        bytes += parts[i].iov_len;
    }
    seal_.seal(to, bytes);
    return bytes + kSealBytes;
}

void GroupSockets::flush() {
    DatagramRun& run = *run_;
    if (run.count == 0) return;
    counters.datagrams_group_sent += run.count;
    const bool cut = run.count > 1 && segmentation_;
    if (!cut || !send_to(*run.to, run.data, run.bytes, run.piece))
        for (size_t at = 0; at < run.bytes; at += run.piece)
            send_to(*run.to, run.data + at, std::min(run.piece, run.bytes - at), 0);
    run.count = run.bytes = 0;
}

/// Sends a datagram, or a run of them if `piece` > 0. If the kernel has no room, the data is lost and its receivers request it again.
/// Returns false if the kernel can't segment runs here.
bool GroupSockets::send_to(const GroupMember& member, std::byte* data, size_t bytes, size_t piece) {
    const int fd = socket_for(member);
    if (fd < 0) return true;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(config().multicast_port));
    to.sin_addr.s_addr = member.address_;
    iovec whole{data, bytes};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(uint16_t))] = {};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &whole;
    message.msg_iovlen = 1;
    if (piece > 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const item = CMSG_FIRSTHDR(&message);
        const auto length = static_cast<uint16_t>(piece);
        item->cmsg_level = SOL_UDP;
        item->cmsg_type = UDP_SEGMENT;
        item->cmsg_len = CMSG_LEN(sizeof length);
        std::memcpy(CMSG_DATA(item), &length, sizeof length);
    }
    if (sendmsg(fd, &message, MSG_DONTWAIT) >= 0) return true;
    if (errno == EAGAIN || errno == ENOBUFS) {
        ++counters.send_busy;
        return true;
    }
    if (piece > 0) return segmentation_ = false;
    rails_at_ = 0;
    return true;
}

bool GroupSockets::receive(int fd) {
    for (int i = 0; i < kBatch; ++i) {
        in_->parts[i] = {in_->data[i], kRoom};
        in_->messages[i] = {};
        msghdr& header = in_->messages[i].msg_hdr;
        header.msg_iov = &in_->parts[i];
        header.msg_iovlen = 1;
        header.msg_control = in_->control[i];
        header.msg_controllen = sizeof in_->control[i];
    }
    const int count = recvmmsg(fd, in_->messages, kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
        const size_t bytes = in_->messages[i].msg_len;
        size_t piece = bytes;
        for (cmsghdr* item = CMSG_FIRSTHDR(&in_->messages[i].msg_hdr); item;
             item = CMSG_NXTHDR(&in_->messages[i].msg_hdr, item)) {
            int length = 0;
            if (item->cmsg_level != SOL_UDP || item->cmsg_type != UDP_GRO) continue;
            std::memcpy(&length, CMSG_DATA(item), sizeof length);
            if (length > 0) piece = static_cast<size_t>(length);
        }
        size_t at = 0;
        do handle(in_->data[i] + at, std::min(piece, bytes - at));
        while (piece > 0 && (at += piece) < bytes);
    }
    return count > 0;
}

void GroupSockets::handle(std::byte* data, size_t bytes) {
    uint64_t key = 0;
    if (bytes >= sizeof key) std::memcpy(&key, data, sizeof key);
    const auto found = members_.find(key);
    if (bytes <= sizeof key || found == members_.end() || !found->second->seal_.open(data, bytes)) {
        ++counters.strangers_group;
        return;
    }
    ++counters.datagrams_group_received;
    found->second->audience_.datagram(data + sizeof key, static_cast<uint32_t>(bytes - sizeof key - kSealBytes));
}

bool GroupSockets::poll(uint64_t now) {
    if (members_.empty()) return false;
    if (now >= rails_at_) follow_rails(now);
    if (ports_ && ports_->version() != ports_seen_) [[unlikely]]
        follow_ports();
    bool any = false;
    for (uint16_t i = 0; i < rails_.count(); ++i)
        if (sockets_[i] >= 0) any |= receive(sockets_[i]);
    return any;
}

}  // namespace starling::network
