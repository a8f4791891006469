#include "fake/wire.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

namespace fake::wire {

namespace {

constexpr uint16_t kGroupPort = 4791;
constexpr int kTick = 100;      ///< ms
constexpr int kGiveUp = 2000;   ///< ms without an answer after which TCP breaks a connection
constexpr int kDownTicks = 20;  ///< number of kTick intervals after which connections over a link that is down break

/// Unread or unsent bytes of one TCP connection. A process sends its requests and its answers on one connection, so there is one per
/// direction.
struct Stream {
    int socket = -1;
    bool outgoing = false;
    Gid gid = {};
    uint16_t port = 0;
    std::vector<std::byte> bytes;
    size_t first = 0;
};

/// The sockets by which a device sends and receives.
struct Place {
    Device* device = nullptr;
    std::string interface;
    in_addr address = {};
    uint16_t port = 0;
    int datagrams = -1, listener = -1, groups = -1;
    uint8_t next = 0;
    int down = 0;  ///< ticks
};

// Never destroyed, because the device's thread runs as long as the process.
auto& places = *new std::vector<std::unique_ptr<Place>>;
auto& streams = *new std::vector<std::unique_ptr<Stream>>;
int watched = -1;
bool found = false;

Place* place_of(const Device* device) {
    for (const auto& place : places)
        if (place->device == device) return place.get();
    return nullptr;
}

sockaddr_in ipv4(const Gid& gid, uint16_t port) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, gid.data() + 12, 4);
    return to;
}

void watch(int socket, uint32_t events, void* what, int how = EPOLL_CTL_ADD) {
    epoll_event event = {.events = events, .data = {.ptr = what}};
    if (epoll_ctl(watched, how, socket, &event) != 0) misuse("epoll_ctl: %s", strerror(errno));
}

int bound(int kind, in_addr address, uint16_t port) {
    const int made = socket(AF_INET, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    const int room = 4 << 20;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(made, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr = address;
    at.sin_port = htons(port);
    if (bind(made, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return made;
    close(made);
    return -1;
}

bool carries(const std::string& interface) {
    const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq asked = {};
    std::snprintf(asked.ifr_name, sizeof asked.ifr_name, "%s", interface.c_str());
    const bool known = ioctl(probe, SIOCGIFFLAGS, &asked) == 0;
    close(probe);
    return known && (asked.ifr_flags & IFF_UP) && (asked.ifr_flags & IFF_RUNNING);
}

uint32_t mtu_of(const std::string& interface) {
    const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq asked = {};
    std::snprintf(asked.ifr_name, sizeof asked.ifr_name, "%s", interface.c_str());
    uint32_t mtu = 256;
    if (ioctl(probe, SIOCGIFMTU, &asked) == 0)
        while (mtu < 4096 && 2 * mtu + sizeof(Packet::Header) + 28 <= static_cast<uint32_t>(asked.ifr_mtu)) mtu *= 2;
    close(probe);
    return mtu;
}

// --- The device's thread ---

void take_packet(const std::byte* data, size_t bytes) {
    Packet packet;
    std::memcpy(&packet.header, data, sizeof packet.header);
    packet.data.assign(data + sizeof packet.header, data + bytes);
    World& all = world();
    if (packet.header.kind == Packet::datagram) {
        // A datagram that we sent to a group returns to us.
        if (!all.pairs.contains(packet.header.from_queue)) all.deliver(packet);
        return;
    }
    QueuePair* pair = all.pair(packet.header.to_queue);
    if (pair && pair->shown.state != IBV_QPS_ERR) return pair->receive(std::move(packet));
    if (packet.header.kind == Packet::reply) return;
    // The queue is missing or broken. Answer with the status that a timeout without any answer would cause.
    Packet answer;
    answer.header = packet.header;
    answer.header.kind = Packet::reply;
    answer.header.status = IBV_WC_RETRY_EXC_ERR;
    std::swap(answer.header.from, answer.header.to);
    std::swap(answer.header.from_queue, answer.header.to_queue);
    answer.header.length = 0;
    send(answer);
}

void read_datagrams(int socket) {
    std::vector<std::byte> buffer(65536);
    for (ssize_t bytes; (bytes = recv(socket, buffer.data(), buffer.size(), 0)) >= 0;)
        if (bytes >= static_cast<ssize_t>(sizeof(Packet::Header))) take_packet(buffer.data(), static_cast<size_t>(bytes));
}

void accept_all(int listener) {
    for (int socket; (socket = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        streams.push_back(std::make_unique<Stream>());
        streams.back()->socket = socket;
        watch(socket, EPOLLIN, streams.back().get());
    }
}

// Breaks all queue pairs that reach their peer by this connection.
void drop(Stream* stream) {
    const Stream old = *stream;
    close(stream->socket);
    std::erase_if(streams, [&](const auto& one) { return one.get() == stream; });
    if (!old.outgoing) return;
    std::vector<uint32_t> broken;
    for (const auto& [number, pair] : world().pairs)
        if (pair->shown.qp_type == IBV_QPT_RC && pair->shown.state >= IBV_QPS_RTR && pair->shown.state != IBV_QPS_ERR &&
            pair->attributes.dest_qp_num >> 8 == old.port &&
            std::memcmp(pair->attributes.ah_attr.grh.dgid.raw, old.gid.data(), 16) == 0)
            broken.push_back(number);
    for (const uint32_t number : broken) break_queue(number, IBV_WC_RETRY_EXC_ERR);
}

/// Sends as many bytes of the stream as its socket accepts. Returns false if the connection was dropped.
bool flush(Stream* stream) {
    while (stream->first < stream->bytes.size()) {
        const ssize_t sent =
            ::send(stream->socket, stream->bytes.data() + stream->first, stream->bytes.size() - stream->first, MSG_NOSIGNAL);
        if (sent > 0) {
            stream->first += static_cast<size_t>(sent);
            continue;
        }
        if (errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS) return true;
        return drop(stream), false;
    }
    stream->bytes.clear();
    stream->first = 0;
    watch(stream->socket, EPOLLIN, stream, EPOLL_CTL_MOD);
    return true;
}

void read_stream(Stream* stream) {
    std::byte buffer[65536];
    for (;;) {
        const ssize_t got = recv(stream->socket, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return drop(stream);
        if (!stream->outgoing) stream->bytes.insert(stream->bytes.end(), buffer, buffer + got);
    }
    uint32_t length = 0;
    while (stream->bytes.size() - stream->first >= sizeof length) {
        std::memcpy(&length, stream->bytes.data() + stream->first, sizeof length);
        if (stream->bytes.size() - stream->first < sizeof length + length) break;
        take_packet(stream->bytes.data() + stream->first + sizeof length, length);
        stream->first += sizeof length + length;
    }
    stream->bytes.erase(stream->bytes.begin(), stream->bytes.begin() + static_cast<std::ptrdiff_t>(stream->first));
    stream->first = 0;
}

void look_at_links() {
    for (const auto& place : places) {
        if (place->device->removed) continue;
        const bool up = carries(place->interface);
        set_link(place->device->facts.name, up);
        if (++place->down < kDownTicks || up) {
            if (up) place->down = 0;
            continue;
        }
        std::vector<uint32_t> broken;
        for (const auto& [number, pair] : world().pairs)
            if (pair->context().device == place->device && !pair->works.empty()) broken.push_back(number);
        for (const uint32_t number : broken) break_queue(number, IBV_WC_RETRY_EXC_ERR);
    }
}

void serve(const epoll_event& event) {
    for (const auto& place : places) {
        if (event.data.ptr == &place->datagrams) return read_datagrams(place->datagrams);
        if (event.data.ptr == &place->groups) return read_datagrams(place->groups);
        if (event.data.ptr == &place->listener) return accept_all(place->listener);
    }
    for (const auto& stream : streams) {
        if (event.data.ptr != stream.get()) continue;
        if (stream->outgoing && (event.events & EPOLLOUT) && !flush(stream.get())) return;
        if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_stream(stream.get());
        return;
    }
}

// Breaks one connection. Called at the interval that FAKE_VERBS_BREAK sets in milliseconds.
void break_one() {
    for (const auto& stream : streams)
        if (stream->outgoing) return drop(stream.get());
}

void run() {
    const char* words = std::getenv("FAKE_VERBS_BREAK");
    const std::chrono::milliseconds pause(words ? std::atoi(words) : 0);
    auto broke = std::chrono::steady_clock::now();
    for (auto looked = broke;;) {
        epoll_event events[16];
        const int count = epoll_wait(watched, events, 16, kTick);
        const Locked locked(world().lock);
        for (int i = 0; i < count; ++i) serve(events[i]);
        if (const auto now = std::chrono::steady_clock::now(); now - looked >= std::chrono::milliseconds(kTick)) {
            looked = now;
            look_at_links();
            if (words && now - broke >= pause) {
                broke = now;
                break_one();
            }
        }
    }
}

void start() {
    // Block all signals in the device's thread, because the program's threads must handle them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread(run).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void add_place(const std::string& interface, in_addr address) {
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address, text, sizeof text);
    add({.name = "fake_" + interface,
         .file = "fake_" + interface,
         .mtu = mtu_of(interface),
         .most_queues = 250,
         .gids = {{2, std::string("::ffff:") + text}}});
    auto place = std::make_unique<Place>();
    place->device = world().devices.back().get();
    place->interface = interface;
    place->address = address;
    places.push_back(std::move(place));
}

// A device needs sockets only when a queue is opened on it.
bool open_sockets(Place& place) {
    if (place.port) return true;
    if (watched < 0) {
        watched = epoll_create1(EPOLL_CLOEXEC);
        start();
    }
    for (int tries = 0; tries < 100; ++tries) {
        place.datagrams = bound(SOCK_DGRAM, place.address, 0);
        sockaddr_in at = {};
        socklen_t size = sizeof at;
        getsockname(place.datagrams, reinterpret_cast<sockaddr*>(&at), &size);
        place.port = ntohs(at.sin_port);
        place.listener = bound(SOCK_STREAM, place.address, place.port);
        if (place.listener >= 0 && listen(place.listener, 100) == 0) break;
        close(place.datagrams);
        place.port = 0;
    }
    if (!place.port) return false;
    watch(place.datagrams, EPOLLIN, &place.datagrams);
    watch(place.listener, EPOLLIN, &place.listener);
    return true;
}

Stream* stream_to(const Place& place, const Gid& gid, uint16_t port) {
    for (const auto& stream : streams)
        if (stream->outgoing && stream->port == port && stream->gid == gid) return stream.get();
    auto made = std::make_unique<Stream>();
    made->socket = bound(SOCK_STREAM, place.address, 0);
    if (made->socket < 0) return nullptr;
    const int limit = kGiveUp, yes = 1;
    setsockopt(made->socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
    setsockopt(made->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const sockaddr_in to = ipv4(gid, port);
    if (connect(made->socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
        close(made->socket);
        return nullptr;
    }
    made->outgoing = true;
    made->gid = gid;
    made->port = port;
    watch(made->socket, EPOLLIN | EPOLLOUT, made.get());
    streams.push_back(std::move(made));
    return streams.back().get();
}

}  // namespace

void find_devices() {
    const char* names = std::getenv("FAKE_VERBS");
    if (!names || found) return;
    found = true;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');)
        for (const ifaddrs* one = all; one; one = one->ifa_next)
            if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && name == one->ifa_name)
                add_place(name, reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
    freeifaddrs(all);
}

uint32_t next_number(Device& device) {
    Place* place = place_of(&device);
    if (!place || !open_sockets(*place)) return 0;
    for (int i = 0; i < 256; ++i) {
        const uint32_t number = uint32_t{place->port} << 8 | place->next++;
        if (!world().pairs.contains(number)) return number;
    }
    return 0;
}

bool elsewhere(const Packet& packet) {
    if (places.empty()) return false;
    for (const auto& place : places)
        if (packet.header.to_queue >> 8 == place->port && world().device_of(packet.header.to) == place->device) return false;
    return true;
}

bool send(const Packet& packet) {
    const Place* from = place_of(world().device_of(packet.header.from));
    if (!from || !from->port || !from->device->up) return false;
    const bool group = packet.header.to_queue == 0xffffff;
    const auto port = static_cast<uint16_t>(group ? kGroupPort : packet.header.to_queue >> 8);
    if (packet.header.kind == Packet::datagram) {
        const sockaddr_in to = ipv4(packet.header.to, port);
        iovec parts[2] = {{const_cast<Packet::Header*>(&packet.header), sizeof packet.header},
                          {const_cast<std::byte*>(packet.data.data()), packet.data.size()}};
        msghdr message = {};
        message.msg_name = const_cast<sockaddr_in*>(&to);
        message.msg_namelen = sizeof to;
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        if (group) setsockopt(from->datagrams, IPPROTO_IP, IP_MULTICAST_IF, &from->address, sizeof from->address);
        return sendmsg(from->datagrams, &message, MSG_NOSIGNAL) >= 0;
    }
    Stream* stream = stream_to(*from, packet.header.to, port);
    if (!stream) return false;
    const auto length = static_cast<uint32_t>(sizeof packet.header + packet.data.size());
    const auto append = [&](const void* data, size_t bytes) {
        stream->bytes.insert(stream->bytes.end(), static_cast<const std::byte*>(data),
                             static_cast<const std::byte*>(data) + bytes);
    };
    const bool idle = stream->bytes.empty();
    append(&length, sizeof length);
    append(&packet.header, sizeof packet.header);
    append(packet.data.data(), packet.data.size());
    // The device's thread writes the remaining bytes, and detects failures.
    const ssize_t sent = idle ? ::send(stream->socket, stream->bytes.data(), stream->bytes.size(), MSG_NOSIGNAL) : 0;
    if (sent == static_cast<ssize_t>(stream->bytes.size())) {
        stream->bytes.clear();
        return true;
    }
    if (sent > 0) stream->first = static_cast<size_t>(sent);
    watch(stream->socket, EPOLLIN | EPOLLOUT, stream, EPOLL_CTL_MOD);
    return true;
}

void join(Device& device, const Gid& group) {
    Place* place = place_of(&device);
    if (!place) return;
    if (place->groups < 0) {
        place->groups = bound(SOCK_DGRAM, {.s_addr = INADDR_ANY}, kGroupPort);
        if (place->groups < 0) misuse("cannot open a socket for groups: %s", strerror(errno));
        const int no = 0;
        setsockopt(place->groups, IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof no);
        watch(place->groups, EPOLLIN, &place->groups);
    }
    ip_mreq asked = {};
    std::memcpy(&asked.imr_multiaddr, group.data() + 12, 4);
    asked.imr_interface = place->address;
    setsockopt(place->groups, IPPROTO_IP, IP_ADD_MEMBERSHIP, &asked, sizeof asked);
}

}  // namespace fake::wire
