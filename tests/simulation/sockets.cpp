// Sockets as simulated processes see them, and waiting for several descriptors. These functions replace libc's, like those in system.cpp.
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "daemon.h"
#include "files.h"
#include "stream.h"
#include "system.h"

using namespace starling::simulation;

namespace {

int done(int error) { return error == 0 ? 0 : failed(error); }

Address from_system(const sockaddr* from) {
    sockaddr_in in;
    std::memcpy(&in, from, sizeof in);
    return {in.sin_addr.s_addr, ntohs(in.sin_port)};
}

void give_address(const Address& address, sockaddr* out, socklen_t* length) {
    if (!out) return;
    const sockaddr_in whole = to_system(address);
    std::memcpy(out, &whole, std::min<size_t>(*length, sizeof whole));
    *length = sizeof whole;
}

/// Options in a control message: the rail and source address of a datagram, or the segment size of a batch.
struct Wishes {
    uint32_t rail = ~0u, source = 0;
    size_t piece = 0;
};

Wishes wishes_of(const msghdr& message) {
    Wishes out;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(const_cast<msghdr*>(&message), item)) {
        if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
            in_pktinfo info;
            std::memcpy(&info, CMSG_DATA(item), sizeof info);
            out.rail = static_cast<uint32_t>(info.ipi_ifindex) - 2;
            out.source = info.ipi_spec_dst.s_addr;
        }
        if (item->cmsg_level == IPPROTO_UDP && item->cmsg_type == UDP_SEGMENT) {
            uint16_t piece;
            std::memcpy(&piece, CMSG_DATA(item), sizeof piece);
            out.piece = piece;
        }
    }
    return out;
}

ssize_t send_datagrams(UdpSocket& socket, const sockaddr* to, const std::string& bytes, const Wishes& wishes) {
    const Address target = to ? from_system(to) : socket.peer;
    if (wishes.piece != 0 && !network()->weather().cuts_runs) return failed(EIO);
    const size_t piece = wishes.piece != 0 ? wishes.piece : std::max<size_t>(bytes.size(), 1);
    for (size_t at = 0; at == 0 || at < bytes.size(); at += piece)
        if (const int error = socket.send(target, wishes.rail, wishes.source, std::string_view(bytes).substr(at, piece)))
            return failed(error);
    return static_cast<ssize_t>(bytes.size());
}

ssize_t receive_datagram(UdpSocket& socket, msghdr& message, unsigned& bytes) {
    if (socket.queue.empty()) return failed(EAGAIN);
    const Datagram datagram = std::move(socket.queue.front());
    socket.queue.pop_front();
    if (is_group(datagram.to)) socket.opening += prices().seal_price(datagram.bytes.size());
    socket.owner->lapsed = 0;
    world()->happened();
    const size_t put = scatter(datagram.bytes, message.msg_iov, message.msg_iovlen);
    message.msg_flags = put < datagram.bytes.size() ? MSG_TRUNC : 0;
    if (message.msg_name) {
        const sockaddr_in from = to_system(datagram.from);
        std::memcpy(message.msg_name, &from, std::min<size_t>(message.msg_namelen, sizeof from));
        message.msg_namelen = sizeof from;
    }
    if (socket.tells_interface && message.msg_control && message.msg_controllen >= CMSG_SPACE(sizeof(in_pktinfo))) {
        auto* const item = static_cast<cmsghdr*>(message.msg_control);
        const in_pktinfo info{static_cast<int>(datagram.rail + 2), {datagram.to}, {datagram.to}};
        item->cmsg_level = IPPROTO_IP;
        item->cmsg_type = IP_PKTINFO;
        item->cmsg_len = CMSG_LEN(sizeof info);
        std::memcpy(CMSG_DATA(item), &info, sizeof info);
        message.msg_controllen = CMSG_SPACE(sizeof info);
    } else {
        message.msg_controllen = 0;
    }
    bytes = static_cast<unsigned>(put);
    return static_cast<ssize_t>(datagram.bytes.size());
}

ssize_t send_on(int fd, const iovec* parts, size_t count, const sockaddr* to, socklen_t to_bytes, const Wishes& wishes) {
    Descriptor* const on = descriptor(fd);
    if (auto* const udp = as<UdpSocket>(on)) return send_datagrams(*udp, to, gather(parts, count), wishes);
    if (auto* const stream = as<StreamSocket>(on)) return stream->send(parts, count);
    if (auto* const control = as<ControlSocket>(on)) {
        const std::string bytes = gather(parts, count);
        control->send(bytes, fd);
        return static_cast<ssize_t>(bytes.size());
    }
    if (!as<BellSocket>(on)) return failed(ENOTCONN);
    const auto* const address = reinterpret_cast<const sockaddr_un*>(to);
    const std::string name(address->sun_path + 1, to_bytes - offsetof(sockaddr_un, sun_path) - 1);
    BellSocket* const bell = find_bell(name);
    // A rank can ring only bells on the same host. The simulator, which plays the daemons of all hosts, rings all with one socket.
    if (!bell || (on->owner->fiber && bell->owner->host != on->owner->host)) return failed(ECONNREFUSED);
    ++bell->words;
    bell->changed();
    return 1;
}

ssize_t receive_on(int fd, msghdr& message) {
    Descriptor* const on = descriptor(fd);
    unsigned bytes = 0;
    if (auto* const udp = as<UdpSocket>(on)) return receive_datagram(*udp, message, bytes);
    if (auto* const stream = as<StreamSocket>(on)) return stream->receive(message.msg_iov, message.msg_iovlen);
    if (auto* const bell = as<BellSocket>(on)) {
        if (bell->words == 0) return failed(EAGAIN);
        --bell->words;
        return 1;
    }
    if (auto* const news = as<RailNews>(on)) {
        if (!std::exchange(news->news, false)) return failed(EAGAIN);
        return 16;
    }
    if (auto* const control = as<ControlSocket>(on)) {
        if (control->replies.empty()) return failed(EAGAIN);
        const size_t put = scatter(control->replies, message.msg_iov, message.msg_iovlen);
        control->replies.erase(0, put);
        return static_cast<ssize_t>(put);
    }
    return failed(ENOTCONN);
}

/// Returns the price of a call that sends or receives `bytes` on this descriptor; negative: it has failed.
uint64_t price_of(int fd, bool sends, ssize_t bytes, size_t datagrams = 1) {
    const Prices& all = prices();
    if (!all.exact || bytes < 0) return all.call;
    Descriptor* const on = descriptor(fd);
    const auto length = static_cast<uint64_t>(bytes);
    if (auto* const udp = as<UdpSocket>(on))
        return all.with_bytes(datagrams * (sends ? all.of.udp_send : all.of.udp_receive), all.of.udp_byte, length) +
               (sends ? 0 : std::exchange(udp->opening, 0));
    if (as<StreamSocket>(on)) return all.with_bytes(sends ? all.of.tcp_send : all.of.tcp_receive, all.of.tcp_byte, length);
    return all.call;
}

/// Sends on a socket, for the price of the call.
ssize_t send_for_price(int fd, const iovec* parts, size_t count, const sockaddr* to, socklen_t to_bytes, const Wishes& wishes) {
    const size_t bytes =
        std::accumulate(parts, parts + count, size_t{0}, [](size_t sum, const iovec& one) { return sum + one.iov_len; });
    const size_t datagrams = wishes.piece == 0 ? 1 : (bytes + wishes.piece - 1) / wishes.piece;
    const bool sealed = to && descriptor_as<UdpSocket>(fd) && is_group(from_system(to).address);
    pay(price_of(fd, true, static_cast<ssize_t>(bytes), datagrams) +
        (sealed ? datagrams * prices().seal_price(bytes / datagrams) : 0));
    return after_paid(send_on(fd, parts, count, to, to_bytes, wishes));
}

/// Changes membership in multicast groups, on one rail each.
int set_group(UdpSocket& socket, int option, const void* value) {
    if (option != IP_MULTICAST_IF && option != IP_ADD_MEMBERSHIP && option != IP_DROP_MEMBERSHIP) return 0;
    ip_mreqn wish;
    std::memcpy(&wish, value, sizeof wish);
    const auto rail = static_cast<uint32_t>(wish.imr_ifindex) - 2;
    const uint32_t group = wish.imr_multiaddr.s_addr;
    if (option == IP_MULTICAST_IF) {
        socket.group_rail = rail;
    } else if (option == IP_DROP_MEMBERSHIP) {
        std::erase_if(socket.groups, [=](const auto& one) { return one.address == group && one.rail == rail; });
    } else {
        if (socket.has_joined(group, rail)) return failed(EADDRINUSE);
        if (socket.groups.size() == 20) return failed(ENOBUFS);
        socket.groups.push_back({group, rail, prices().exact ? world()->now + prices().of.groups_udp_join : 0});
    }
    return 0;
}

/// Polls simulated descriptors, and waits until one of them has an event.
int poll_until(Process& me, pollfd* fds, nfds_t count, uint64_t until) {
    for (;;) {
        int ready = 0;
        for (nfds_t i = 0; i < count; ++i) {
            const Descriptor* const each = descriptor(fds[i].fd);
            fds[i].revents =
                each ? static_cast<short>(each->events() & (static_cast<uint32_t>(fds[i].events) | POLLERR | POLLHUP)) : 0;
            ready += fds[i].revents != 0;
        }
        if (ready > 0 || world()->now >= until) return after(ready);
        me.on_descriptors = true;
        world()->note("poll", me.number);
        world()->sleep_until(until);
    }
}

}  // namespace

SIMULATED int socket(int family, int type, int protocol) noexcept {
    Process* const me = caller();
    if (!me) return REAL(socket)(family, type, protocol);
    const bool stream = (type & 0xf) == SOCK_STREAM;
    if (family == AF_NETLINK) return open_descriptor(std::make_unique<RailNews>(*me));
    if (family == AF_UNIX && stream) return open_descriptor(std::make_unique<ControlSocket>(*me));
    if (family == AF_UNIX) return open_descriptor(std::make_unique<BellSocket>(*me));
    if (stream) return open_descriptor(std::make_unique<StreamSocket>(*me));
    return open_descriptor(std::make_unique<UdpSocket>(*me));
}

SIMULATED int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
    Descriptor* const on = descriptor(fd);
    if (!on) return REAL(bind)(fd, address, bytes);
    if (auto* const udp = as<UdpSocket>(on)) {
        udp->bind(from_system(address));
    } else if (auto* const stream = as<StreamSocket>(on)) {
        stream->local = from_system(address);
        if (stream->local.port == 0) stream->local.port = network()->free_port();
    }
    return 0;
}

SIMULATED int connect(int fd, const sockaddr* address, socklen_t bytes) {
    Descriptor* const on = descriptor(fd);
    if (!on) return REAL(connect)(fd, address, bytes);
    if (auto* const udp = as<UdpSocket>(on)) udp->peer = from_system(address);
    if (auto* const stream = as<StreamSocket>(on)) return after(done(stream->connect(from_system(address))));
    // Ranks ring bells without a connection. They connect to the launcher's broker of descriptors, which no simulated host has.
    if (as<BellSocket>(on)) return after(failed(ECONNREFUSED));
    return after(0);
}

SIMULATED int listen(int fd, int backlog) noexcept {
    auto* const stream = descriptor_as<StreamSocket>(fd);
    if (!stream) return REAL(listen)(fd, backlog);
    stream->listens = true;
    return 0;
}

SIMULATED int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
    auto* const stream = descriptor_as<StreamSocket>(fd);
    if (!stream) return REAL(accept4)(fd, address, bytes, flags);
    return after(stream->accept());
}

SIMULATED int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
    Descriptor* const on = descriptor(fd);
    if (!on) return REAL(getsockname)(fd, address, bytes);
    if (as<BellSocket>(on)) {
        const std::string name = name_of_bell(fd);
        sockaddr_un whole{};
        whole.sun_family = AF_UNIX;
        std::memcpy(whole.sun_path + 1, name.data(), name.size());
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        std::memcpy(address, &whole, std::min<size_t>(*bytes, length));
        *bytes = length;
    } else if (auto* const udp = as<UdpSocket>(on)) {
        give_address(udp->bound, address, bytes);
    } else if (auto* const stream = as<StreamSocket>(on)) {
        give_address(stream->local, address, bytes);
    }
    return 0;
}

SIMULATED int getpeername(int fd, sockaddr* address, socklen_t* bytes) noexcept {
    auto* const stream = descriptor_as<StreamSocket>(fd);
    if (!stream) return REAL(getpeername)(fd, address, bytes);
    give_address(stream->remote, address, bytes);
    return 0;
}

SIMULATED int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) noexcept {
    Descriptor* const on = descriptor(fd);
    if (!on) return REAL(setsockopt)(fd, level, option, value, bytes);
    auto* const udp = as<UdpSocket>(on);
    if (udp && level == IPPROTO_IP && option == IP_PKTINFO) udp->tells_interface = *static_cast<const int*>(value) != 0;
    if (udp && level == IPPROTO_IP) return set_group(*udp, option, value);
    auto* const stream = as<StreamSocket>(on);
    if (stream && level == SOL_SOCKET && option == SO_LINGER)
        stream->abandoned = static_cast<const linger*>(value)->l_onoff && static_cast<const linger*>(value)->l_linger == 0;
    return 0;
}

SIMULATED int getsockopt(int fd, int level, int option, void* value, socklen_t* bytes) noexcept {
    Descriptor* const on = descriptor(fd);
    if (!on) return REAL(getsockopt)(fd, level, option, value, bytes);
    auto* const stream = as<StreamSocket>(on);
    if (level == SOL_SOCKET && option == SO_PEERCRED) {
        const ucred self{on->owner->pid, geteuid(), getegid()};
        std::memcpy(value, &self, sizeof self);
        return 0;
    }
    if (level == IPPROTO_UDP && option == UDP_SEGMENT) return network()->weather().cuts_runs ? 0 : failed(ENOPROTOOPT);
    if (stream && level == SOL_SOCKET && option == SO_ERROR) {
        const int error = stream->fetch_error();
        std::memcpy(value, &error, sizeof error);
        return 0;
    }
    if (stream && level == IPPROTO_TCP && option == TCP_INFO) {
        const tcp_info info = stream->info();
        std::memcpy(value, &info, std::min<size_t>(*bytes, sizeof info));
        return after(0);
    }
    return failed(ENOPROTOOPT);
}

SIMULATED int shutdown(int fd, int how) noexcept {
    auto* const stream = descriptor_as<StreamSocket>(fd);
    if (!stream) return REAL(shutdown)(fd, how);
    stream->finish();
    return after(0);
}

SIMULATED int close(int fd) {
    if (!descriptor(fd)) {
        if (caller()) forget_file(fd);
        return REAL(close)(fd);
    }
    close_descriptor(fd);
    return 0;
}

SIMULATED ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    if (!descriptor(fd)) return REAL(sendmsg)(fd, message, flags);
    return send_for_price(fd, message->msg_iov, message->msg_iovlen, static_cast<const sockaddr*>(message->msg_name),
                          message->msg_namelen, wishes_of(*message));
}

SIMULATED ssize_t sendto(int fd, const void* data, size_t bytes, int flags, const sockaddr* to, socklen_t to_bytes) {
    if (!descriptor(fd)) return REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    const iovec part{const_cast<void*>(data), bytes};
    return send_for_price(fd, &part, 1, to, to_bytes, {});
}

SIMULATED ssize_t send(int fd, const void* data, size_t bytes, int flags) {
    if (!descriptor(fd)) return REAL(send)(fd, data, bytes, flags);
    return sendto(fd, data, bytes, flags, nullptr, 0);
}

SIMULATED ssize_t recvmsg(int fd, msghdr* message, int flags) {
    if (!descriptor(fd)) return REAL(recvmsg)(fd, message, flags);
    const ssize_t n = receive_on(fd, *message);
    return after(n, price_of(fd, false, n));
}

SIMULATED ssize_t recvfrom(int fd, void* data, size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
    if (!descriptor(fd)) return REAL(recvfrom)(fd, data, bytes, flags, from, from_bytes);
    iovec part{data, bytes};
    msghdr message{from, from_bytes ? *from_bytes : 0, &part, 1, nullptr, 0, 0};
    const ssize_t n = receive_on(fd, message);
    if (n >= 0 && from_bytes) *from_bytes = message.msg_namelen;
    return after(n, price_of(fd, false, n));
}

SIMULATED ssize_t recv(int fd, void* data, size_t bytes, int flags) {
    if (!descriptor(fd)) return REAL(recv)(fd, data, bytes, flags);
    return recvfrom(fd, data, bytes, flags, nullptr, nullptr);
}

SIMULATED int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
    auto* const udp = descriptor_as<UdpSocket>(fd);
    if (!udp) return REAL(recvmmsg)(fd, messages, count, flags, limit);
    int got = 0;
    ssize_t bytes = 0;
    for (; static_cast<unsigned>(got) < count; ++got) {
        const ssize_t one = receive_datagram(*udp, messages[got].msg_hdr, messages[got].msg_len);
        if (one < 0) break;
        bytes += one;
    }
    if (got == 0) return after_nothing(failed(EAGAIN));
    return after(got, price_of(fd, false, bytes, static_cast<size_t>(got)));
}

// Functions that wait for several descriptors.

SIMULATED int epoll_create1(int flags) noexcept {
    Process* const me = caller();
    return me ? open_descriptor(std::make_unique<EpollSet>(*me)) : REAL(epoll_create1)(flags);
}

SIMULATED int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
    auto* const of = descriptor_as<EpollSet>(set);
    return of ? of->control(operation, fd, event) : REAL(epoll_ctl)(set, operation, fd, event);
}

SIMULATED int epoll_wait(int set, epoll_event* events, int most, int limit_ms) {
    auto* const of = descriptor_as<EpollSet>(set);
    if (!of) return REAL(epoll_wait)(set, events, most, limit_ms);
    const int taken = of->take(events, most);
    return taken > 0 ? after(taken) : after_nothing(taken);
}

SIMULATED int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask) {
    if (!caller()) return REAL(ppoll)(fds, count, limit, mask);
    return poll_until(*world()->current(), fds, count, limit ? world()->now + ns_of(*limit) : UINT64_MAX);
}

SIMULATED int poll(pollfd* fds, nfds_t count, int limit_ms) {
    if (!caller()) return REAL(poll)(fds, count, limit_ms);
    return poll_until(*world()->current(), fds, count,
                      limit_ms < 0 ? UINT64_MAX : world()->now + static_cast<uint64_t>(limit_ms) * 1'000'000);
}
