#include "transport/network/datagram/udp.h"

#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::network {

namespace {

constexpr int kSocketBuffer = 4 << 20;  ///< size of each socket's send and receive buffer, requested from the kernel, bytes
/// Limits of a run (datagrams passed to the kernel in one block, which it splits): bytes in all, and number of datagrams.
constexpr uint32_t kRunBytes = 65000;
constexpr int kRunMost = 32;

/// Sets the options that all sockets of the port share. SO_REUSEPORT is set only after the port was chosen: otherwise the kernel could
/// choose one that another process of this user shares.
void prepare(int fd) {
    set_buffer_sizes(fd);
    const int discover = IP_PMTUDISC_DO, share = 1;
    (void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof share);
}

void set_interface_info(int fd, bool wanted) {
    const int on = wanted;
    (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

/// Buffer for the control messages of one datagram or run: interface and segment size.
struct alignas(cmsghdr) ControlBuffer {
    char bytes[CMSG_SPACE(sizeof(in_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
};

SendResult meaning_of(int error) {
    switch (error) {
        case EMSGSIZE:
            return SendResult::too_long;
        case EAGAIN:
        case ENOBUFS:
        case ENOMEM:
            return SendResult::busy;
        default:
            return SendResult::closed;
    }
}

}  // namespace

void set_buffer_sizes(int fd) {
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
}

struct Udp::UdpSendBatch {
    Destination where;
    void* token;
    uint32_t number;
    uint32_t bytes;
    int count;
    iovec parts[kMostParts];
    alignas(8) std::byte front[kMostFront];
};

struct Udp::UdpReceiveBatch {
    // Space for each received datagram, bytes. Pages beyond the longest datagram received are never touched.
    static constexpr size_t kStride = 12 * 1024;
    static_assert(kStride >= kMostDatagram && kStride % 4096 == 0);
    mmsghdr messages[kReceiveBatch];
    iovec parts[kReceiveBatch];
    sockaddr_in from[kReceiveBatch];
    ControlBuffer control[kReceiveBatch];
    std::byte* buffers;
    ~UdpReceiveBatch() {
        if (buffers) munmap(buffers, kReceiveBatch * kStride);
    }
};

Udp::Udp() = default;

Udp::~Udp() {
    for (const Socket& socket : sockets_)
        if (socket.fd >= 0) close(socket.fd);
}

int Udp::open(uint32_t address) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail(MPI_ERR_OTHER, "cannot open a UDP socket: %s", std::strerror(errno));
    sockets_[0].fd = fd;
    socket_count_ = 1;
    sockaddr_in mine{};
    mine.sin_family = AF_INET;
    mine.sin_addr.s_addr = sockets_[0].address = address;
    socklen_t length = sizeof mine;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &length) != 0)
        return fail(MPI_ERR_OTHER, "cannot bind a UDP port: %s", std::strerror(errno));
    port_ = ntohs(mine.sin_port);
    prepare(fd);
    int segment = 0;
    socklen_t size = sizeof segment;
    segmentation_ = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &size) == 0;

    // Not initialized, since most processes never use more than the first few entries.
    out_ = std::make_unique_for_overwrite<UdpSendBatch[]>(kBatch);
    in_ = std::make_unique<UdpReceiveBatch>();
    void* const memory = mmap(nullptr, kReceiveBatch * UdpReceiveBatch::kStride, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return fail(MPI_ERR_NO_MEM, "cannot allocate memory for received datagrams");
    in_->buffers = static_cast<std::byte*>(memory);
    for (int i = 0; i < kReceiveBatch; ++i) {
        in_->parts[i] = {in_->buffers + i * UdpReceiveBatch::kStride, UdpReceiveBatch::kStride};
        in_->messages[i].msg_hdr = {
            &in_->from[i], sizeof in_->from[i], &in_->parts[i], 1, &in_->control[i], sizeof in_->control[i], 0};
    }
    return MPI_SUCCESS;
}

void Udp::enable_interface_info(bool wanted) {
    for (int i = 0; wanted != interfaces_ && i < open_count(); ++i) set_interface_info(open_socket(i).fd, wanted);
    interfaces_ = wanted;
}

bool Udp::open_door(uint32_t address, std::span<const uint32_t> kept, int epoll, uint32_t& bit, int& fd) {
    Socket *const doors = sockets_ + kFirstDoor, *const end = doors + door_count_;
    if (sockets_[0].address == 0 || sockets_[0].address == address) return false;
    if (std::any_of(doors, end, [address](const Socket& door) { return door.address == address; })) return false;
    const auto is_stale = [kept](const Socket& door) {
        return std::find(kept.begin(), kept.end(), door.address) == kept.end();
    };
    Socket* const place = door_count_ < kDoors ? end : std::find_if(doors, end, is_stale);
    if (place == doors + kDoors) return false;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    prepare(fd);
    if (interfaces_) set_interface_info(fd, true);
    sockaddr_in mine{};
    mine.sin_family = AF_INET;
    mine.sin_port = htons(port_);
    mine.sin_addr.s_addr = address;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) != 0) return close(fd), false;
    if (place == end) {
        ++door_count_;
    } else {
        // Remove the socket from epoll explicitly, since a forked child of the program may also have the descriptor.
        epoll_ctl(epoll, EPOLL_CTL_DEL, place->fd, nullptr);
        close(place->fd);
    }
    *place = {};
    place->fd = fd;
    place->address = address;
    bit = 1u << (place - sockets_);
    return true;
}

int Udp::point_lane(int lane, const Destination& where) {
    const bool is_new = lane + 1 == socket_count_;
    int& fd = sockets_[lane + 1].fd;
    sockaddr_in mine{};
    mine.sin_family = AF_INET;
    mine.sin_port = htons(port_);
    mine.sin_addr.s_addr = where.from ? where.from : sockets_[0].address;
    if (!is_new) {
        // Fail if the lane's socket is bound to an address of another rail: it cannot be connected to this destination.
        sockaddr_in bound;
        socklen_t length = sizeof bound;
        if (interfaces_ &&
            (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0 || bound.sin_addr.s_addr != where.from))
            return -1;
    } else {
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) return -1;
        prepare(fd);
        if (interfaces_) set_interface_info(fd, true);
    }
    if ((!is_new || bind(fd, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) == 0) &&
        ::connect(fd, reinterpret_cast<const sockaddr*>(&where.to), sizeof where.to) == 0) {
        socket_count_ += is_new;
        return fd;
    }
    if (is_new) {
        close(fd);
        fd = -1;
    }
    return -1;
}

void Udp::queue(const Destination& where, void* token, uint32_t number, const iovec* parts, int count) {
    if (queued_ == kBatch) flush_queued();
    UdpSendBatch& out = out_[queued_++];
    out.where = where;
    out.token = token;
    out.number = number;
    out.count = count;
    std::memcpy(out.front, parts[0].iov_base, parts[0].iov_len);
    out.parts[0] = {out.front, parts[0].iov_len};
    size_t bytes = parts[0].iov_len;
    for (int i = 1; i < count; ++i) {
        out.parts[i] = parts[i];
        bytes += parts[i].iov_len;
    }
    out.bytes = static_cast<uint32_t>(bytes);
}

// Returns how many datagrams from `first` on the kernel may split from one run: they have one destination, and one size except for the
// last.
int Udp::run_of_equals(int first) const {
    const UdpSendBatch& head = out_[first];
    uint32_t sum = head.bytes;
    int run = 1;
    while (segmentation_ && first + run < queued_ && run < kRunMost) {
        const UdpSendBatch& next = out_[first + run];
        if (!next.where.same_place(head.where) || next.where.lane != head.where.lane || next.bytes > head.bytes ||
            sum + next.bytes > kRunBytes)
            break;
        sum += next.bytes;
        ++run;
        if (next.bytes < head.bytes) break;
    }
    return run;
}

void Udp::describe(int first, int run, msghdr& message, iovec* parts, void* control) {
    UdpSendBatch& head = out_[first];
    size_t count = 0;
    for (int i = first; i < first + run; ++i)
        for (int p = 0; p < out_[i].count; ++p) parts[count++] = out_[i].parts[p];
    const bool by_lane = head.where.lane != Destination::kNoLane;
    const bool interface = head.where.interface != 0 && !by_lane;
    message = {by_lane ? nullptr : &head.where.to,
               by_lane ? 0u : static_cast<socklen_t>(sizeof head.where.to),
               parts,
               count,
               nullptr,
               0,
               0};
    if (!interface && run == 1) [[likely]]
        return;
    message.msg_control = control;
    message.msg_controllen = sizeof(ControlBuffer);
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    size_t used = 0;
    if (interface) {
        const in_pktinfo info{static_cast<int>(head.where.interface), {head.where.from}, {0}};
        item->cmsg_level = IPPROTO_IP;
        item->cmsg_type = IP_PKTINFO;
        item->cmsg_len = CMSG_LEN(sizeof info);
        std::memcpy(CMSG_DATA(item), &info, sizeof info);
        used += CMSG_SPACE(sizeof info);
        item = reinterpret_cast<cmsghdr*>(static_cast<char*>(control) + used);
    }
    if (run > 1) {
        const auto size = static_cast<uint16_t>(head.bytes);
        item->cmsg_level = IPPROTO_UDP;
        item->cmsg_type = UDP_SEGMENT;
        item->cmsg_len = CMSG_LEN(sizeof size);
        std::memcpy(CMSG_DATA(item), &size, sizeof size);
        used += CMSG_SPACE(sizeof size);
    }
    message.msg_controllen = used;
}

// Sends a small datagram alone: one contiguous block and sendto() cost 0.2 us less than a list of parts.
int Udp::send_small(UdpSendBatch& out) {
    std::byte whole[kCopied];
    size_t bytes = 0;
    for (int p = 0; p < out.count; ++p) {
        std::memcpy(whole + bytes, out.parts[p].iov_base, out.parts[p].iov_len);
        bytes += out.parts[p].iov_len;
    }
    const bool by_lane = out.where.lane != Destination::kNoLane;
    const auto* const to = by_lane ? nullptr : reinterpret_cast<const sockaddr*>(&out.where.to);
    const socklen_t length = by_lane ? 0 : sizeof out.where.to;
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (sendto(socket_of(out.where), whole, bytes, MSG_DONTWAIT, to, length) >= 0) return 0;
        if (errno != EINTR && errno != ECONNREFUSED) break;
    }
    return errno;
}

// Sends one datagram or run; returns 0 or errno. A failed call is repeated, since it may have reported an earlier datagram's error.
int Udp::send_run(int first, int run) {
    const Destination& where = out_[first].where;
    if (run == 1 && out_[first].bytes <= kCopied && (where.interface == 0 || where.lane != Destination::kNoLane))
        return send_small(out_[first]);
    msghdr message;
    iovec parts[kRunMost * kMostParts];
    ControlBuffer control;
    describe(first, run, message, parts, &control);
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (sendmsg(socket_of(where), &message, MSG_DONTWAIT) >= 0) return 0;
        if (errno != EINTR && errno != ECONNREFUSED) break;
    }
    return errno;
}

void Udp::flush_queued() {
    for (int first = 0; first < queued_;) {
        int run = run_of_equals(first);
        int error = send_run(first, run);
        if (error != 0 && run > 1 && error != EAGAIN) {
            // The device may be unable to send runs. Send the datagrams one by one, which shows which of them fails, and why.
            if (error == EIO || error == EINVAL || error == EOPNOTSUPP) segmentation_ = false;
            run = 1;
            error = send_run(first, run);
        }
        if (error == EAGAIN) {
            refuse(first, queued_ - first, error);
            break;
        }
        if (error != 0) refuse(first, run, error);
        first += run;
    }
    queued_ = 0;
}

void Udp::refuse(int first, int count, int error) {
    busy_ += meaning_of(error) == SendResult::busy;
    for (int i = first; i < first + count; ++i) refused_(out_[i].token, out_[i].number, meaning_of(error));
}

// Adapts the number of datagrams that the next receive() requests: one while they arrive singly, since requesting more costs a second check
// of the socket in the kernel.
void Udp::adapt(Socket& socket, int received) {
    const bool filled = received == socket.wanted;
    if (filled && socket.filled)
        socket.wanted = std::min(2 * socket.wanted, kReceiveBatch);
    else if (received <= socket.wanted / 4)
        socket.wanted = std::max(socket.wanted / 2, 1);
    socket.filled = filled;
}

// Receives one datagram by recvfrom(), the cheapest call, for ping-pong traffic.
bool Udp::receive_one(int fd) {
    socklen_t length = sizeof in_->from[0];
    const ssize_t n = recvfrom(fd, in_->buffers, UdpReceiveBatch::kStride, MSG_DONTWAIT | MSG_TRUNC,
                               reinterpret_cast<sockaddr*>(&in_->from[0]), &length);
    if (n < 0) return false;
    in_->messages[0].msg_len = static_cast<unsigned>(n);
    in_->messages[0].msg_hdr.msg_controllen = 0;
    in_->messages[0].msg_hdr.msg_flags = static_cast<size_t>(n) > UdpReceiveBatch::kStride ? MSG_TRUNC : 0;
    return true;
}

// Returns the socket to read. Three of four polls read the socket that last received something; the others take turns for the fourth.
Udp::Socket& Udp::next_to_read() {
    if (expected_ != 0) {
        Socket& socket = sockets_[std::countr_zero(expected_)];
        expected_ &= expected_ - 1;
        return socket;
    }
    if (open_count() == 1 || ++turn_ % 4 != 0) [[likely]]
        return sockets_[productive_];
    return open_socket(static_cast<int>(turn_ / 4 % static_cast<uint32_t>(open_count())));
}

int Udp::receive() {
    Socket& socket = next_to_read();
    const int received = receive(socket);
    if (received > 0) productive_ = static_cast<int>(&socket - sockets_);
    return received;
}

int Udp::receive(Socket& socket) {
    const int received = socket.wanted == 1 && !interfaces_
                             ? receive_one(socket.fd)
                             : recvmmsg(socket.fd, in_->messages, static_cast<unsigned>(socket.wanted), MSG_DONTWAIT, nullptr);
    if (received <= 0) {
        socket.wanted = 1;
        socket.filled = false;
        return 0;
    }
    int kept = 0;
    for (int i = 0; i < received; ++i) {
        ReceivedDatagram& arrival = arrivals_[kept];
        msghdr& message = in_->messages[i].msg_hdr;
        arrival = {static_cast<std::byte*>(in_->parts[i].iov_base), in_->messages[i].msg_len, in_->from[i].sin_addr.s_addr,
                   ntohs(in_->from[i].sin_port), 0};
        for (cmsghdr* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
            if (item->cmsg_level != IPPROTO_IP || item->cmsg_type != IP_PKTINFO) continue;
            in_pktinfo info;
            std::memcpy(&info, CMSG_DATA(item), sizeof info);
            arrival.interface = static_cast<uint32_t>(info.ipi_ifindex);
        }
        if (message.msg_flags & MSG_TRUNC)
            ++truncated_;
        else
            ++kept;
        message.msg_namelen = sizeof in_->from[i];
        message.msg_controllen = sizeof in_->control[i];
        message.msg_flags = 0;
    }
    adapt(socket, received);
    return kept;
}

}  // namespace starling::network
