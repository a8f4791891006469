// The network's connections: carries out by RC or TCP what link/connection decides. A process without connections has no TCP socket. The
// process that requests a connection chooses the kind: RC where both processes are known to have verbs, and TCP for a while after RC has
// failed.
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/live.h"
#include "mpi.h"
#include "transport/batch.h"
#include "transport/network/network.h"
#include "transport/remote_memory.h"

namespace starling::network {

static_assert(sizeof(ConnectionOffer) <= transport::Connector::kOffer);

namespace {
NetworkPath& path_of(Connection& connection) { return *static_cast<NetworkPath*>(connection.user); }
NetworkPath& remote(transport::Path& path) { return static_cast<NetworkPath&>(path); }

/// Interval (ns) of the checks whether RC can replace TCP. It is also the first pause of a path after an attempt to replace its connection.
constexpr uint64_t kBetterInterval = 10'000'000;
/// Bounds (ns) of the pause without RC after a failure.
constexpr uint64_t kFirstPause = 1'000'000'000, kLongestPause = 60'000'000'000;

/// Fails an operation on memory for which can_access() is false.
int no_access(const char* what) {
    return fail(
        MPI_ERR_UNSUPPORTED_OPERATION,
        "can't %s the peer's memory by RDMA, because no open connection reaches it; set STARLING_VERBS=off to avoid RDMA",
        what);
}
}  // namespace

void NetworkPath::report(const char* what) const {
    if (config().verbose < 2) return;
    std::fprintf(stderr, "starling: rank %u: connection with rank %u on host %s %s%s%.*s\n", network().self_.rank, to.rank,
                 to.segment->host(to.segment->host_of(to.rank)).name, what, failure_text().empty() ? "" : ": ",
                 static_cast<int>(failure_text().size()), failure_text().data());
}

void NetworkPath::attach_wire() { wire_->attached = session_ && network().endpoint_->attach(*session_, *wire_->connection); }

void NetworkPath::detach_wire() {
    if (!wire_) return;
    if (wire_->attached && session_) network().endpoint_->detach(*session_, *wire_->connection);
    wire_->attached = false;
}

bool Network::carry(transport::Path& path, OutStream& stream) {
    const NetworkPath& by = remote(path);
    const auto goes_on = [&stream] {
        const auto* const connection = static_cast<const Connection*>(stream.connection);
        return connection && connection->serves();
    };
    if (goes_on()) return true;
    if (stream.connection || !by.uses_wire() || by.wire_->connection->finished()) return false;
    by.wire_->connection->by.add_stream(*by.wire_->connection, stream);
    return goes_on();
}

void Network::end(OutStream& stream, bool confirmed) {
    if (stream.connection) static_cast<Connection*>(stream.connection)->by.remove_stream(stream, confirmed);
}

// Handles the peer's notice that one of its interfaces (rail_lost) or queues (wire_lost) is down.
void NetworkPath::handle(const transport::Packet& packet) {
    if (!wire_ || !wire_->connection) return;
    if (packet.header.kind == packet::PacketKind::rail_lost && packet.header.bytes == sizeof(uint32_t)) {
        uint32_t address = 0;
        std::memcpy(&address, packet.payload, sizeof address);
        wire_->connection->by.lose_remote(*wire_->connection, address);
    }
    if (packet.header.kind == packet::PacketKind::wire_lost && wire_->rc && packet.header.bytes == sizeof(QueuePair)) {
        QueuePair pair;
        std::memcpy(&pair, packet.payload, sizeof pair);
        network().rc_->lose_remote_queue(*wire_->connection, pair);
    }
}

void Network::set_expected_traffic(transport::Path& path, uint32_t messages) {
    NetworkPath& to = remote(path);
    to.foreseen_ = messages;
    if (to.rc()) rc_->set_expected_traffic(*to.rc(), messages);
}

// Functions for memory that the device of an RC connection accesses.

bool Network::can_register(const transport::Path& to) const {
    const RcConnection* const rc = static_cast<const NetworkPath&>(to).rc();
    return rc && rc->serves();
}

bool Network::can_access(const transport::Path& of, const transport::RemoteKey& key) const {
    const RcConnection* const rc = static_cast<const NetworkPath&>(of).rc();
    return rc && rc->reaches(key);
}

void* Network::register_memory(transport::Path& to, const void* memory, uint64_t bytes, bool stays, transport::RemoteKey& key) {
    return can_register(to) ? Rc::register_memory(*remote(to).rc(), memory, bytes, stays, key) : nullptr;
}

bool Network::post(transport::Path& from, void* memory, uint64_t bytes, uint32_t word, transport::RdmaTarget& target,
                   transport::RemoteKey& key) {
    return can_register(from) && Rc::post_rdma_target(*remote(from).rc(), memory, bytes, word, target, key);
}

int Network::put(transport::Path& to, const transport::RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes,
                 transport::Completion& done) {
    if (!can_access(to, region)) return no_access("write");
    return rc_->write(*remote(to).rc(), region, offset, from, bytes, done);
}

int Network::get(transport::Path& of, const transport::RemoteKey& region, uint64_t offset, void* into, uint64_t bytes,
                 transport::Completion& done) {
    if (!can_access(of, region)) return no_access("read");
    return rc_->read(*remote(of).rc(), region, offset, into, bytes, done);
}

int Network::write(transport::Path& to, const transport::RemoteKey& region, const void* from, uint64_t bytes, uint32_t word,
                   transport::WriteNotice told, transport::Completion& done) {
    if (!can_access(to, region)) return no_access("write");
    return rc_->write_expected(*remote(to).rc(), region, from, bytes, word, told, done);
}

// Functions for the events that connections report.

void Network::note(NetworkPath& path, bool PathConnection::*what) {
    PathConnection& wire = *path.wire_;
    wire.*what = true;
    if (wire.queued) return;
    wire.queued = true;
    told_.push_back(&path);
}

ConnectionUpcalls Network::wire_upcalls() {
    ConnectionUpcalls all;
    all.opened = [](Connection& c) { path_of(c).network().note(path_of(c), &PathConnection::opened); };
    all.ended = [](Connection& c) { path_of(c).network().note(path_of(c), &PathConnection::ended); };
    all.failed = all.broken = [](Connection& c) {
        path_of(c).report(c.state() == Connection::CarrierState::idle ? "failed" : "broke");
        path_of(c).network().note(path_of(c), &PathConnection::broken);
    };
    all.request_ack = [](Connection& c) {
        if (const NetworkPath& path = path_of(c); path.session_) path.network().endpoint_->request_ports(*path.session_);
    };
    all.paused = [](Connection& c) { path_of(c).network().note(path_of(c), &PathConnection::paused); };
    all.trusted = [](Connection& c) { path_of(c).network().note(path_of(c), &PathConnection::trusted); };
    all.frame = [](Connection& c, const std::byte* frame, size_t bytes) {
        NetworkPath& path = path_of(c);
        Network& network = path.network();
        return path.session_ && network.endpoint_->receive_frame(*path.session_, c, frame, bytes, network.last_traffic_);
    };
    all.room = [](Connection& c) {
        const NetworkPath& path = path_of(c);
        if (path.wire_->attached && path.session_) path.network().endpoint_->writable(*path.session_, c);
    };
    all.rerouted = [](Connection& c) {
        NetworkPath& path = path_of(c);
        if (!path.wire_->attached) return;
        path.detach_wire();
        path.attach_wire();
    };
    all.target = [](Connection& c, const StreamFragment& piece, uint64_t done, uint64_t bytes) {
        return path_of(c).network().sink_.target(path_of(c).user, piece, done, bytes);
    };
    all.unpack = [](Connection& c, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
        path_of(c).network().sink_.unpack(path_of(c).user, piece, done, data, bytes);
    };
    all.fragment = [](Connection& c, const StreamFragment& piece) {
        path_of(c).network().sink_.on_fragment(path_of(c).user, piece);
    };
    all.stranded = [](OutStream& stream) { stream.source().stranded(stream); };
    return all;
}

// Notifies the peers of this host's interfaces that went down. A peer does not notice that a cable is pulled at this host: it would send
// into the dead link until its timeout. The notice travels over any remaining path, if necessary as a datagram.
void Network::report_lost_rails(const uint32_t* now, size_t count) {
    for (const uint32_t address : rails_) {
        if (std::find(now, now + count, address) != now + count) continue;
        for (NetworkPath* path : wired_)
            if (path->wire_->attached) sink_.send(path->user, packet::PacketKind::rail_lost, &address, sizeof address);
    }
    rails_.assign(now, now + count);
}

// Passes the interfaces in use to TCP. The endpoint knows their addresses; this function adds the netmask of each.
void Network::follow_rails() {
    if (rails_seen_ == endpoint_->rails_version()) return;
    uint32_t addresses[16];
    const size_t count = std::min(endpoint_->addresses(addresses, std::size(addresses)), std::size(addresses));
    rails_seen_ = endpoint_->rails_version();
    std::vector<TcpRail> rails;
    for (size_t i = 0; i < count; ++i) rails.push_back({addresses[i], 0});
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) list = nullptr;
    for (const ifaddrs* one = list; one; one = one->ifa_next) {
        if (!one->ifa_addr || !one->ifa_netmask || one->ifa_addr->sa_family != AF_INET) continue;
        const uint32_t address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
        for (TcpRail& rail : rails)
            if (rail.address == address) rail.netmask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr;
    }
    freeifaddrs(list);
    tcp_->set_rails(rails);
    report_lost_rails(addresses, count);
}

/// Creates the TCP engine if there is none. Returns false with failure_text() if no descriptor is available.
bool Network::ensure_tcp() {
    if (tcp_) return true;
    TcpOptions options;
    options.self = {self_.job(), self_.rank};
    options.key = self_.segment->header().key;
    options.cipher = endpoint_->cipher();
    options.sockets_per_rail = static_cast<uint32_t>(config().ip_sockets);
    options.fragment_bytes = config().ip_piece;
    options.on_rails_alone = config().ip_interfaces && *config().ip_interfaces;
    std::unique_ptr<Tcp> made;
    if (Tcp::create(options, wire_upcalls(), made) != MPI_SUCCESS) return false;
    epoll_event event{EPOLLIN, {.u64 = Endpoint::kWires}};
    if (epoll_ctl(endpoint_->wait_fd(), EPOLL_CTL_ADD, made->wait_fd(), &event) != 0) return false;
    tcp_ = std::move(made);
    rails_seen_ = endpoint_->rails_version() - 1;
    follow_rails();
    return true;
}

// Functions that link/connection calls.

/// Returns whether RC may be used. With encryption it may not, because nothing seals the memory that a device reads and writes.
bool Network::has_verbs() const { return endpoint_->ports() && !endpoint_->cipher() && endpoint_->ports()->count() > 0; }

/// Returns the port by which both processes have announced that they can be reached, or nullptr. Only an attempt to connect shows whether
/// the port works.
verbs::Port* NetworkPath::port(uint8_t& place) const {
    if (!session_ || !network().has_verbs()) return nullptr;
    const int known = network().endpoint_->likely_verbs_place(*session_);
    if (known < 0) return nullptr;
    place = static_cast<uint8_t>(known);
    return network().endpoint_->ports()->port(place);
}

bool Network::earned(uint32_t packets, uint64_t bytes) const {
    return packets >= static_cast<uint32_t>(live(config().connect_messages)) || bytes >= live(config().connect_bytes);
}

// Returns whether a connection is faster for these messages. A message that fits in one datagram costs one system call either way, and more
// work in the kernel over TCP.
bool Network::speeds_up(uint64_t messages, uint64_t bytes) const { return has_verbs() || bytes > messages * kOneDatagram; }

bool Network::has_place() {
    return wired_.size() < static_cast<size_t>(live(config().max_connections)) && (has_verbs() || ensure_tcp());
}

void Network::acquire_slot(transport::Path& path) {
    remote(path).wire_ = std::make_unique<PathConnection>();
    wired_.push_back(&remote(path));
}

/// Creates the connection, of the given kind. Returns false with failure_text() if that kind is not available.
bool Network::connect_by(NetworkPath& path, bool rc) {
    PathConnection& wire = *path.wire_;
    const ProcessId peer{path.to.job(), path.to.rank};
    if (rc) {
        uint8_t place = 0;
        verbs::Port* port = path.port(place);
        // No common port is known here, but the peer has already found one: use any usable port.
        for (uint8_t i = 0; !port && has_verbs() && i < verbs::Ports::kMost; ++i)
            if (endpoint_->ports()->usable(i)) port = endpoint_->ports()->port(place = i);
        if (!port || port->counters().queues >= port->facts().most_queues)
            return fail(MPI_ERR_OTHER,
                        port ? "device %s has no queue pair left for a connection" : "no verbs port reaches the peer",
                        port ? port->facts().device : "") == MPI_SUCCESS;
        if (!rc_)
            rc_ = std::make_unique<Rc>(wire_upcalls(),
                                       [](Connection& c, packet::PacketKind kind, const void* payload, uint32_t bytes) {
                                           path_of(c).network().sink_.send(path_of(c).user, kind, payload, bytes);
                                       });
        wire.connection = &rc_->add(peer, &path, path.session_, place, *port);
        rc_->set_expected_traffic(static_cast<RcConnection&>(*wire.connection), path.foreseen_);
    } else {
        if (!ensure_tcp()) return false;
        const uint64_t key = path.to.segment->host(path.to.segment->host_of(path.to.rank)).key;
        wire.connection = &tcp_->add(peer, key, &path, path.session_, endpoint_->pair_with(*path.session_));
    }
    wire.rc = rc;
    return true;
}

void Network::drop_connection(NetworkPath& path) {
    path.detach_wire();
    PathConnection& wire = *path.wire_;
    // drop() reports the connection's unfinished streams as stranded, so that the base path carries their remaining bytes.
    if (wire.connection) wire.connection->by.drop(*wire.connection);
    wire.connection = nullptr;
    // Events of this connection that were not handled yet must not count as the next connection's.
    wire.carries = wire.opened = wire.ended = wire.broken = wire.paused = wire.trusted = false;
}

/// Makes the path use TCP for a while after RC did not open or broke. The time doubles with each failure.
void Network::avoid_rc(NetworkPath& path) {
    path.rc_pause_ = std::clamp(2 * path.rc_pause_, kFirstPause, kLongestPause);
    path.rc_from_ = now_ns() + path.rc_pause_;
}

uint32_t Network::describe(transport::Path& path, packet::PacketKind kind, std::byte* payload) {
    NetworkPath& to = remote(path);
    PathConnection& wire = *to.wire_;
    if (!wire.connection && kind == packet::PacketKind::accept) return 0;  // the connection failed; link will refuse it
    uint32_t bytes = 0;
    const auto described = [&] { return wire.connection->by.describe(*wire.connection, kind, payload, bytes) == MPI_SUCCESS; };
    uint8_t place = 0;
    if (wire.connection || (to.port(place) && to.rc_from_ <= now_ns() && connect_by(to, true))) {
        if (described()) return bytes;
        if (!wire.rc) return failed_to(to, "cannot be offered"), bytes;
        avoid_rc(to);
        drop_connection(to);
    }
    clear_failure();
    if (!connect_by(to, false) || !described()) failed_to(to, "cannot be offered");
    return bytes;
}

/// Reports that the path's connection can't be opened.
void Network::failed_to(NetworkPath& path, const char* what) {
    path.report(what);
    note(path, &PathConnection::broken);
}

// Opens the connection by the peer's packet. If both sides have sent `open`, each for another kind, the connection is TCP, since both
// support it.
void Network::use(transport::Path& path, packet::PacketKind kind, const std::byte* payload) {
    NetworkPath& to = remote(path);
    PathConnection& wire = *to.wire_;
    if (kind == packet::PacketKind::open) {
        const bool rc = Rc::is_offer(payload);
        if (wire.connection && rc && !wire.rc) return;
        if (wire.connection && wire.rc && !rc) drop_connection(to);
        if (!wire.connection && !connect_by(to, rc)) return failed_to(to, "cannot be opened");
    }
    if (!wire.connection || wire.connection->by.use(*wire.connection, kind, payload) == MPI_SUCCESS) return;
    failed_to(to, "cannot be opened");
}

void Network::finish(transport::Path& path) {
    remote(path).detach_wire();
    remote(path).wire_->carries = false;
    Connection& connection = *remote(path).wire_->connection;
    connection.by.finish(connection);
}

void Network::release_slot(transport::Path& path) {
    NetworkPath& to = remote(path);
    drop_connection(to);
    std::erase(wired_, &to);
    std::erase(told_, &to);
    to.wire_.reset();
}

// Handles the peer's refusal for another reason than a lack of slots. Without a slot the peer could not use TCP either, and requests a
// connection itself when it has one.
void Network::failed_there(transport::Path& path) {
    NetworkPath& to = remote(path);
    if (to.wire_ && to.wire_->rc && !to.wire_->opened_once) avoid_rc(to);
}

void Network::each_user(void (*visit)(void* user, void* argument), void* argument) {
    for (const NetworkPath* path : wired_) visit(path->user, argument);
}

// Detaches a paused connection, so that its frames are sent again as datagrams; reattaches one whose pause has ended.
void Network::follow_pause(NetworkPath& path) {
    PathConnection& wire = *path.wire_;
    wire.paused = wire.trusted = false;
    if (!wire.connection) return;
    const bool carries = wire.carries && !wire.connection->paused();
    if (carries == wire.attached) return;
    if (carries)
        path.attach_wire();
    else
        path.detach_wire();
    clear_failure();
    path.report(carries ? "is used again" : "stalls: datagrams are used instead");
}

void Network::act_on_news() {
    while (!told_.empty()) {
        NetworkPath& path = *told_.back();
        told_.pop_back();
        PathConnection& wire = *path.wire_;
        wire.queued = false;
        if (wire.opened) {
            wire.opened = false;
            wire.carries = wire.opened_once = true;
            if (wire.rc) path.better_pause_ = path.better_from_ = 0;
            path.attach_wire();
            sink_.connection(path.user, transport::ConnectionEvent::ready);
            clear_failure();
            if (path.wire_) path.report(path.wire_->rc ? "opened by RC" : "opened");
        }
        if (path.wire_ && (path.wire_->paused || path.wire_->trusted)) follow_pause(path);
        if (path.wire_ && (path.wire_->ended || path.wire_->broken)) {
            const bool broken = path.wire_->broken;
            if (path.wire_->rc && !broken) path.rc_pause_ = 0;
            path.wire_->ended = path.wire_->broken = false;
            if (path.wire_->rc && broken) avoid_rc(path);
            sink_.connection(path.user, broken ? transport::ConnectionEvent::broken : transport::ConnectionEvent::ended);
        }
    }
}

/// Adds the stream fragments sent since the last call to the counters, because fragments bypass the session, which counts packets.
void Network::count_fragments() {
    const auto count = [](const Connections& of, StreamTotals& before, Count& messages, Count& bytes) {
        const StreamTotals so_far = of.fragments_sent();
        messages += so_far.fragments - before.fragments;
        bytes += so_far.bytes - before.bytes;
        before = so_far;
    };
    if (tcp_) count(*tcp_, counted_by_tcp_, counters.messages_tcp, counters.bytes_tcp);
    if (rc_) count(*rc_, counted_by_rc_, counters.messages_rc, counters.bytes_rc);
}

bool Network::poll_wires(uint64_t now) {
    if (!tcp_) return settle_wires(now);
    follow_rails();
    const uint64_t before = last_traffic_;
    last_traffic_ = now;
    bool any = false;
    {
        // Batch the replies, so that one acknowledgement covers everything received in this poll. Otherwise each TCP frame that overtakes a
        // datagram would trigger its own.
        const transport::Batch batch(this);
        any = tcp_->poll(now);
    }
    if (!any) last_traffic_ = before;
    return settle_wires(now) || any;
}

/// Replaces TCP connections by RC, where verbs became known or usable only after the TCP connection was opened.
void Network::find_better_path(uint64_t now) {
    if (now < better_at_) return;
    better_at_ = now + kBetterInterval;
    std::vector<NetworkPath*> found;
    uint8_t place = 0;
    for (NetworkPath* path : wired_) {
        if (!path->wire_->carries || path->wire_->rc || path->rc_from_ > now || path->better_from_ > now || !path->port(place))
            continue;
        // If the new connection is TCP again, the peer had a reason to avoid RC, so the next attempt must wait longer.
        path->better_pause_ = std::clamp(2 * path->better_pause_, kBetterInterval, kLongestPause);
        path->better_from_ = now + path->better_pause_;
        found.push_back(path);
    }
    for (NetworkPath* path : found) sink_.connection(path->user, transport::ConnectionEvent::surpassed);
}

/// Handles the events that connections have reported, and the work that had to wait until no callback is running.
bool Network::settle_wires(uint64_t now) {
    if (tcp_ && has_verbs()) find_better_path(now);
    const bool any = rc_ && rc_->poll();
    if (tcp_ || rc_) count_fragments();
    if (!told_.empty()) [[unlikely]]
        act_on_news();
    return any;
}

// Polls the datagrams. The endpoint polls the verbs ports too, and delivers the session frames of RC connections in between.
bool Network::poll_datagrams(uint64_t now) {
    if (devices_at_ <= now) [[unlikely]]
        find_devices(now);
    if (!rc_) [[likely]]
        return endpoint_->poll(now);
    last_traffic_ = now;
    had_rc_event_ = false;
    const bool any = endpoint_->poll(now);
    return (had_rc_event_ || rc_->due() ? settle_wires(now) : false) || any || had_rc_event_;
}

// Polls the RDMA rings in memory, without a system call.
bool Network::poll_rings(uint64_t now) {
    last_traffic_ = now;
    if (!rc_->poll_rings()) return false;
    by_datagram_.last = now;
    endpoint_->ports_brought();
    settle_wires(now);
    return true;
}

void Network::happened(uint16_t, verbs::Port& port, const verbs::VerbsEvent& event) {
    had_rc_event_ = true;
    if (!rc_ || event.kind == verbs::VerbsEvent::VerbsEventKind::up) return;
    if (event.kind == verbs::VerbsEvent::VerbsEventKind::down) return rc_->lose_port(port, false);
    rc_->happened(event);
}

void Network::closing(uint16_t place, verbs::Port& port) {
    had_rc_event_ = true;
    if (groups_) groups_->closing(place);
    if (rc_) rc_->lose_port(port, true);
}

uint64_t Network::wires_deadline() const {
    if (!told_.empty() || (rc_ && rc_->due())) return 0;
    return tcp_ ? tcp_->next_deadline() : UINT64_MAX;
}

}  // namespace starling::network
