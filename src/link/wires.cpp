#include "link/wires.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "link/manager.h"
#include "link/remote.h"
#include "transport/ip/tcp.h"

namespace starling::link {

/// A peer's connection, from the first word of it to the last.
struct Wire {
    ip::Connection* connection = nullptr;
    bool attached = false;  ///< the session sends through it
    // What tcp has told in the middle of something, to be acted upon after it.
    bool opened = false, ended = false, broken = false, doubted = false, trusted = false, queued = false;
};

namespace {

STARLING_STATE Immortal<std::unique_ptr<ip::Tcp>> tcp_storage;
constinit auto& tcp = tcp_storage.value;
STARLING_STATE Immortal<std::vector<Peer*>> users_storage;  ///< peers with a wire
constinit auto& users = users_storage.value;
STARLING_STATE Immortal<std::vector<Peer*>> told_storage;  ///< of these, those with news
constinit auto& told = told_storage.value;
STARLING_STATE uint32_t rails_seen = 0;
STARLING_STATE uint64_t last_traffic = 0;

constexpr uint32_t kBackoff = 16;  ///< windows of traffic after a connection that did not open

Peer& peer_of(ip::Connection& connection) { return *static_cast<Peer*>(connection.user); }

void note(ip::Connection& connection, bool Wire::*what) {
    Peer& peer = peer_of(connection);
    Wire& wire = *peer.wire;
    wire.*what = true;
    if (wire.queued) return;
    wire.queued = true;
    told.push_back(&peer);
}

void tell(const char* what, const Peer& peer) {
    if (config().verbose < 2) return;
    const job::JobSegment& segment = peer.job.segment();
    std::fprintf(stderr, "starling: rank %u: connection with rank %u on host %s %s%s%.*s\n", self().rank, peer.rank,
                 segment.host(segment.host_of(peer.rank)).name, what, failure_text().empty() ? "" : ": ",
                 static_cast<int>(failure_text().size()), failure_text().data());
}

void attach(Peer& peer) { peer.wire->attached = network->attach(*peer.session, *peer.wire->connection); }

void detach(Peer& peer) {
    if (peer.wire->attached && peer.session) network->detach(*peer.session, *peer.wire->connection);
    peer.wire->attached = false;
}

bool on_frame(ip::Connection& connection, const std::byte* frame, size_t bytes) {
    Peer& peer = peer_of(connection);
    const NetworkBatch batch;  // what its packets make us answer goes out together
    return peer.session && network->receive_frame(*peer.session, connection, frame, bytes, last_traffic);
}

void on_room(ip::Connection& connection) {
    Peer& peer = peer_of(connection);
    if (peer.wire->attached && peer.session) network->writable(*peer.session, connection);
}

void on_rerouted(ip::Connection& connection) {
    Peer& peer = peer_of(connection);
    if (!peer.wire->attached) return;
    detach(peer);
    attach(peer);
}

ip::TcpUpcalls tcp_upcalls() {
    ip::TcpUpcalls all;
    all.opened = [](ip::Connection& c) { note(c, &Wire::opened); };
    all.ended = [](ip::Connection& c) { note(c, &Wire::ended); };
    all.failed = all.broken = [](ip::Connection& c) {
        tell(c.state() == ip::Connection::State::idle ? "failed" : "broke", peer_of(c));
        note(c, &Wire::broken);
    };
    all.ask = [](ip::Connection& c) {
        if (Peer& peer = peer_of(c); peer.session) network->ask(*peer.session);
    };
    all.doubted = [](ip::Connection& c) { note(c, &Wire::doubted); };
    all.trusted = [](ip::Connection& c) { note(c, &Wire::trusted); };
    all.frame = on_frame;
    all.room = on_room;
    all.rerouted = on_rerouted;
    all.target = [](ip::Connection& c, const ip::Piece& piece, uint64_t done, uint64_t bytes) {
        return upcalls.target(peer_of(c), piece, done, bytes);
    };
    all.unpack = [](ip::Connection& c, const ip::Piece& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
        upcalls.unpack(peer_of(c), piece, done, data, bytes);
    };
    all.piece = [](ip::Connection& c, const ip::Piece& piece) { upcalls.piece(peer_of(c), piece); };
    all.stranded = [](ip::OutStream& stream) { upcalls.stranded(stream); };
    return all;
}

// To the other side of a cable that is pulled here nothing has happened: it would send into it until it finds out by
// silence. The word goes over whatever is left, if need be as a datagram.
void tell_of_lost_rails(const uint32_t* now, size_t count) {
    STARLING_STATE static Lazy<std::vector<uint32_t>> addresses;
    auto& before = addresses.get();
    for (const uint32_t address : before) {
        if (std::find(now, now + count, address) != now + count) continue;
        for (Peer* peer : users)
            if (peer->wire->attached) send_control(*peer, packet::Kind::rail_gone, &address, sizeof address);
    }
    before.assign(now, now + count);
}

// The endpoint knows which interfaces are to be used; of these, the networks they are in.
void follow_rails() {
    if (rails_seen == network->rails_version()) return;
    rails_seen = network->rails_version();
    uint32_t addresses[16];
    const size_t count = std::min(network->addresses(addresses, std::size(addresses)), std::size(addresses));
    std::vector<ip::TcpRail> rails;
    for (size_t i = 0; i < count; ++i) rails.push_back({addresses[i], 0});
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) list = nullptr;
    for (const ifaddrs* one = list; one; one = one->ifa_next) {
        if (!one->ifa_addr || !one->ifa_netmask || one->ifa_addr->sa_family != AF_INET) continue;
        const uint32_t address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
        for (ip::TcpRail& rail : rails)
            if (rail.address == address) rail.netmask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr;
    }
    freeifaddrs(list);
    tcp->set_rails(rails);
    tell_of_lost_rails(addresses, count);
}

/// False with failure_text() if there is no descriptor to be had.
bool ensure_tcp() {
    if (tcp) return true;
    ip::TcpOptions options;
    options.self = {self().job->address().id, self().rank};
    options.key = self().job->segment().header().key;
    options.sockets_per_rail = static_cast<uint32_t>(config().ip_sockets);
    options.piece_bytes = config().ip_piece;
    std::unique_ptr<ip::Tcp> made;
    if (ip::Tcp::create(options, tcp_upcalls(), made) != MPI_SUCCESS) return false;
    epoll_event event{EPOLLIN, {.u64 = 2}};
    if (epoll_ctl(network->wait_fd(), EPOLL_CTL_ADD, made->wait_fd(), &event) != 0) return false;
    tcp = std::move(made);
    rails_seen = network->rails_version() - 1;
    follow_rails();
    return true;
}

// What the machine decides.

bool wire_free() { return users.size() < static_cast<size_t>(config().max_connections) && network && ensure_tcp(); }

void take_wire(Peer& peer) {
    peer.wire = new Wire;
    const job::JobSegment& segment = peer.job.segment();
    const uint64_t key = segment.host(segment.host_of(peer.rank)).key;
    peer.wire->connection = &tcp->add({peer.job.address().id, peer.rank}, key, &peer, peer.session);
    users.push_back(&peer);
}

uint32_t describe_wire(Peer& peer, packet::Kind kind, std::byte* payload) {
    if (kind == packet::Kind::accept) return 0;  // who accepts connects, and needs no offer
    ip::ConnectionOffer offer;
    if (tcp->offer(*peer.wire->connection, offer) != MPI_SUCCESS) {
        tell("not offered", peer);
        note(*peer.wire->connection, &Wire::broken);
    }
    std::memcpy(payload, &offer, sizeof offer);
    return sizeof offer;
}

void use_wire(Peer& peer, packet::Kind kind, const std::byte* payload) {
    if (kind == packet::Kind::accept) return;  // it comes to us
    ip::ConnectionOffer offer;
    std::memcpy(&offer, payload, sizeof offer);
    if (tcp->dial(*peer.wire->connection, offer) == MPI_SUCCESS) return;
    tell("not opened", peer);
    note(*peer.wire->connection, &Wire::broken);
}

void finish_wire(Peer& peer) {
    detach(peer);
    tcp->finish(*peer.wire->connection);
}

void give_wire(Peer& peer) {
    detach(peer);
    Wire* const wire = peer.wire;
    tcp->drop(*wire->connection);  // strands its streams
    peer.wire = nullptr;
    std::erase(users, &peer);
    std::erase(told, &peer);
    delete wire;
}

void each_wire_user(void (*visit)(Peer& peer, void* argument), void* argument) {
    for (Peer* peer : users) visit(*peer, argument);
}

// What a connection in doubt has taken of the session goes again as datagrams; one that is trusted again carries all.
void follow_doubt(Peer& peer) {
    Wire& wire = *peer.wire;
    wire.doubted = wire.trusted = false;
    const bool carries = peer.state == State::connected && !wire.connection->doubted();
    if (carries == wire.attached) return;
    if (carries)
        attach(peer);
    else
        detach(peer);
    clear_failure();
    tell(carries ? "is used again" : "stalls: datagrams go on", peer);
}

void act_on_news() {
    while (!told.empty()) {
        Peer& peer = *told.back();
        told.pop_back();
        Wire& wire = *peer.wire;
        wire.queued = false;
        if (wire.opened) {
            wire.opened = false;
            attach(peer);
            apply(peer, Event::ready);
            clear_failure();
            if (peer.wire) tell("opened", peer);
        }
        if (peer.wire && (peer.wire->doubted || peer.wire->trusted)) follow_doubt(peer);
        if (peer.wire && (peer.wire->ended || peer.wire->broken)) {
            if (peer.state == State::connecting) peer.backoff = kBackoff;
            const Event event = peer.wire->broken ? Event::broken : Event::close;
            peer.wire->ended = peer.wire->broken = false;
            apply(peer, event);
        }
    }
}

}  // namespace

constexpr Medium kWires{wire_free, take_wire, describe_wire, use_wire, finish_wire, give_wire, each_wire_user};

namespace {
/// Pieces do not pass the session, where packets are counted.
void count_pieces() {
    STARLING_STATE static uint64_t pieces = 0, bytes = 0;
    const ip::TcpCounters& so_far = tcp->counters();
    counters.messages_tcp += so_far.pieces_sent - pieces;
    counters.bytes_tcp += so_far.piece_bytes_sent - bytes;
    pieces = so_far.pieces_sent;
    bytes = so_far.piece_bytes_sent;
}
}  // namespace

bool poll_wires(uint64_t now) {
    if (!tcp) return false;
    follow_rails();
    const uint64_t before = last_traffic;
    last_traffic = now;
    const bool any = tcp->poll(now);
    if (any)
        count_pieces();
    else
        last_traffic = before;
    if (!told.empty()) [[unlikely]]
        act_on_news();
    return any;
}

uint64_t wires_deadline() {
    if (!told.empty()) return 0;
    return tcp ? tcp->next_deadline() : UINT64_MAX;
}

void on_rail_gone(Peer& peer, const std::byte* payload, uint32_t bytes) {
    uint32_t address = 0;
    if (!peer.wire || bytes != sizeof address) return;
    std::memcpy(&address, payload, sizeof address);
    tcp->lose_remote(*peer.wire->connection, address);
}

bool goes_by_wire(const Peer& peer) { return peer.wire && peer.wire->attached && !peer.wire->connection->doubted(); }

bool send_by_wire(Peer& peer, ip::OutStream& stream) {
    if (!goes_by_wire(peer) || peer.wire->connection->finished()) return false;
    tcp->add_stream(*peer.wire->connection, stream);
    return true;
}

void end_stream(ip::OutStream& stream, bool confirmed) {
    if (tcp) tcp->remove_stream(stream, confirmed);
}

bool is_by_wire(const ip::OutStream& stream) {
    return stream.connection && stream.connection->state() == ip::Connection::State::open && !stream.connection->finished() &&
           !stream.connection->doubted();
}

}  // namespace starling::link
