#include "transport/network/tcp/tcp.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/reserve.h"
#include "mpi.h"
#include "transport/network/tcp/engine.h"
#include "transport/network/tcp/socket.h"

namespace starling::network {

namespace {

constexpr size_t kHotSockets = 4;
constexpr uint64_t kHotPolls = 2000;    ///< number of polls without data after which only epoll watches a socket
constexpr uint64_t kAskEpollEvery = 4;  ///< polls from one query of epoll to the next, while there are hot sockets

}  // namespace

TcpConnection::TcpConnection(Connections& by) : Connection(by), parts_(std::make_unique<ConnectionParts>()) {}
TcpConnection::~TcpConnection() = default;

SendResult TcpConnection::send(const iovec* parts, int count) { return parts_->engine->send(*this, parts, count); }

bool TcpConnection::stalls(uint64_t now) {
    parts_->engine->now = std::max(parts_->engine->now, now);
    return parts_->engine->stalls(*this);
}

Tcp::Tcp(std::unique_ptr<TcpEngine> engine) : engine_(std::move(engine)) { engine_->tcp = this; }
Tcp::~Tcp() = default;

int Tcp::create(const TcpOptions& options, const TcpUpcalls& upcalls, std::unique_ptr<Tcp>& out) {
    auto engine = std::make_unique<TcpEngine>();
    engine->options = options;
    engine->upcalls = upcalls;
    engine->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (engine->epoll < 0)
        return fail(MPI_ERR_OTHER, "cannot create an epoll descriptor for connections to other hosts: %s", strerror(errno));
    out.reset(new Tcp(std::move(engine)));
    return MPI_SUCCESS;
}

int Tcp::wait_fd() const { return engine_->epoll; }
void Tcp::set_rails(std::span<const TcpRail> rails) { engine_->set_rails(rails); }
void Tcp::lose_remote(Connection& connection, uint32_t address) { engine_->lose_remote(connection, address); }
Connection& Tcp::add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair) {
    return engine_->add(peer, peer_key, user, session, pair);
}
int Tcp::offer(Connection& connection, ConnectionOffer& out) { return engine_->offer(connection, out); }
int Tcp::dial(Connection& connection, const ConnectionOffer& offer) { return engine_->dial(connection, offer); }

int Tcp::describe(Connection& connection, packet::PacketKind kind, std::byte* payload, uint32_t& bytes) {
    bytes = 0;
    if (kind == packet::PacketKind::accept) return MPI_SUCCESS;
    ConnectionOffer offer;
    const int error = engine_->offer(connection, offer);
    std::memcpy(payload, &offer, bytes = sizeof offer);
    return error;
}

int Tcp::use(Connection& connection, packet::PacketKind kind, const std::byte* payload) {
    if (kind == packet::PacketKind::accept) return MPI_SUCCESS;  // nothing to do: the peer connects
    ConnectionOffer offer;
    std::memcpy(&offer, payload, sizeof offer);
    return engine_->dial(connection, offer);
}

void Tcp::finish(Connection& connection) { engine_->finish(connection); }
void Tcp::drop(Connection& connection) { engine_->drop(connection); }
void Tcp::add_stream(Connection& connection, OutStream& stream) { engine_->add_stream(connection, stream); }
void Tcp::remove_stream(OutStream& stream, bool confirmed) { engine_->remove_stream(stream, confirmed); }
bool Tcp::poll(uint64_t now) { return engine_->poll(now); }
uint64_t Tcp::next_deadline() const { return engine_->next_event; }
const TcpCounters& Tcp::counters() const { return engine_->counters; }

TcpEngine::~TcpEngine() {
    for (auto& socket : sockets) close(socket->fd);
    for (auto& connection : connections)
        for (StreamList* list : {&parts(*connection).working, &parts(*connection).waiting})
            while (OutStream* stream = list->pop_front()) stream->connection = nullptr;
    for (const Listener& listener : listeners) close(listener.fd);
    for (const int fd : {epoll, spare})
        if (fd >= 0) close(fd);
}

Connection& TcpEngine::add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair) {
    Connection& connection = *connections.emplace_back(std::make_unique<TcpConnection>(*tcp));
    connection.peer = peer;
    connection.user = user;
    connection.session = session;
    parts(connection).engine = this;
    parts(connection).peer_key = peer_key;
    parts(connection).pair = pair;
    return connection;
}

TcpSocket& TcpEngine::adopt(int fd, TcpSocket::TcpState state, Connection* connection) {
    make_room(doomed, sockets.size() + 1);  // reserved now, so that closing a socket needs no memory
    make_room(buried, sockets.size() + 1);
    make_room(hot, kHotSockets);
    if (connection) make_room(parts(*connection).sockets);
    TcpSocket& socket = *sockets.emplace_back(std::make_unique<TcpSocket>());
    socket.fd = fd;
    socket.state = state;
    socket.path = next_path++;
    socket.connection = connection;
    if (connection) parts(*connection).sockets.push_back(&socket);
    if (state == TcpSocket::TcpState::caller) ++callers;
    epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = &socket}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) doom(socket, strerror(errno));
    return socket;
}

// Marks a socket for closing. A socket may fail anywhere in the code, and the upcalls about it may call any function, so poll() does the
// rest.
void TcpEngine::doom(TcpSocket& socket, std::string why) {
    if (socket.doomed || socket.state == TcpSocket::TcpState::dead) return;
    socket.doomed = true;
    socket.grave = std::move(why);
    doomed.push_back(&socket);
    next_event = 0;
}

void TcpEngine::close_socket(TcpSocket& socket) {
    if (socket.state == TcpSocket::TcpState::dead) return;
    if (socket.state == TcpSocket::TcpState::caller) --callers;
    if (socket.state == TcpSocket::TcpState::open) --counters.sockets;
    if (socket.blocked) --blocked;
    socket.state = TcpSocket::TcpState::dead;
    // A forked child of the program may have the descriptor too. Then close() alone would neither stop its events, which name the socket's
    // memory, nor end the connection.
    epoll_ctl(epoll, EPOLL_CTL_DEL, socket.fd, nullptr);
    shutdown(socket.fd, SHUT_RDWR);
    close(socket.fd);
    std::erase(hot, &socket);
    std::erase(doomed, &socket);
    if (socket.connection) {
        ConnectionParts& of = parts(*socket.connection);
        std::erase(of.sockets, &socket);
        if (of.primary == &socket) of.primary = nullptr;
    }
    const auto place = std::find_if(sockets.begin(), sockets.end(), [&](auto& one) { return one.get() == &socket; });
    buried.push_back(std::move(*place));
    sockets.erase(place);
    next_event = 0;  // the next poll frees the memory
}

void TcpEngine::bury_doomed() {
    while (!doomed.empty()) bury(*doomed.back());
}

void TcpEngine::bury(TcpSocket& socket) {
    const TcpSocket::TcpState was = socket.state;
    Connection* connection = socket.connection;
    const bool carried_frames = connection && parts(*connection).primary == &socket;
    abandon(socket.fd);
    close_socket(socket);
    if (!connection) return;
    ConnectionParts& of = parts(*connection);
    if (was != TcpSocket::TcpState::open) {
        of.last_failure = socket.grave;
        return attempt_failed(*connection);
    }
    lose_path(*connection, socket.path);
    const auto alive = std::find_if(of.sockets.begin(), of.sockets.end(), [](const TcpSocket* other) {
        return other->state == TcpSocket::TcpState::open && !other->doomed;
    });
    if (alive == of.sockets.end()) return broken(*connection, socket.grave);
    if (of.dialler) attempt_failed(*connection);
    if (carried_frames) {
        of.primary = *alive;
        of.room_wanted = false;
        upcalls.rerouted(*connection);
    }
    if (connection->state_ == Connection::CarrierState::open) pump(*connection);
    if (connection->state_ == Connection::CarrierState::open) report_ended(*connection);
}

void TcpEngine::lose_path(Connection& connection, PathId path) {
    ConnectionParts& of = parts(connection);
    for (OutStream* stream = of.working.front(); stream; stream = of.working.next(stream)) stream->lose(path);
    std::vector<OutStream*> again;
    for (OutStream* stream = of.waiting.front(); stream; stream = of.waiting.next(stream))
        if (stream->lose(path)) again.push_back(stream);
    for (OutStream* stream : again) {
        if (connection.finished_ || connection.paused_) {
            upcalls.stranded(*stream);
            continue;
        }
        StreamList::remove(stream);
        of.working.push_back(stream);
    }
}

void TcpEngine::broken(Connection& connection, const std::string& why) {
    ConnectionParts& of = parts(connection);
    while (!of.sockets.empty()) close_socket(*of.sockets.back());
    connection.state_ = Connection::CarrierState::idle;
    connection.paused_ = false;
    of.token = 0;
    of.redial_at = of.pause_ends = UINT64_MAX;
    ++counters.broken;
    --counters.connections;
    fail(MPI_ERR_OTHER, "%s", why.c_str());
    strand(connection);
    upcalls.broken(connection);
}

void TcpEngine::drop(Connection& connection) {
    if (connection.state_ == Connection::CarrierState::dropped) return;
    ConnectionParts& of = parts(connection);
    while (!of.sockets.empty()) close_socket(*of.sockets.back());
    if (connection.state_ == Connection::CarrierState::open) --counters.connections;
    connection.state_ = Connection::CarrierState::dropped;
    std::erase(to_pump, &connection);
    strand(connection);
    const auto place =
        std::find_if(connections.begin(), connections.end(), [&](auto& one) { return one.get() == &connection; });
    forgotten.push_back(std::move(*place));
    connections.erase(place);
    next_event = 0;
}

// Marks a socket as hot. Hot sockets, which had traffic recently, are read directly without epoll: one system call for each message.
void TcpEngine::heat(TcpSocket& socket) {
    socket.last_active = polls;
    if (socket.hot) return;
    if (hot.size() >= kHotSockets) {
        size_t coolest = hot.size();
        for (size_t i = 0; i < hot.size(); ++i)
            if (!hot[i]->unread && (coolest == hot.size() || hot[i]->last_active < hot[coolest]->last_active)) coolest = i;
        if (coolest < hot.size()) cool(coolest);
    }
    socket.hot = true;
    hot.push_back(&socket);
}

void TcpEngine::cool(size_t index) {
    hot[index]->hot = false;
    hot[index] = hot.back();
    hot.pop_back();
}

void TcpEngine::handle(TcpSocket& socket, uint32_t events) {
    switch (socket.state) {
        case TcpSocket::TcpState::connecting:
            if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) on_connected(socket);
            return;
        case TcpSocket::TcpState::greeting:
            return on_welcome(socket);
        case TcpSocket::TcpState::caller:
            return on_hello(socket);
        case TcpSocket::TcpState::open:
            // After the peer's finish frame nothing is read from the socket. Data that is sent to the peer may still be lost, and only a
            // reset shows that.
            if ((events & EPOLLERR) && socket.ended)
                return doom(socket, std::string("connection with ") + print_address(socket.rail.remote, 0) + " lost: reset");
            if ((events & EPOLLOUT) && socket.blocked) on_writable(socket);
            if ((events & ~EPOLLOUT) && socket.state == TcpSocket::TcpState::open) receive(socket);
            return;
        case TcpSocket::TcpState::dead:
            return;  // the socket was closed by an earlier event of the same batch
    }
}

// Handles events of a socket. Data is lost once it is read. So if there is no memory for it, the socket is closed. The peer then repeats on
// another path what was not acknowledged.
void TcpEngine::serve(TcpSocket& socket, uint32_t events) {
    try {
        handle(socket, events);
    } catch (const std::bad_alloc&) { doom(socket, "out of memory"); }
}

void TcpEngine::handle_events() {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, 0);
    for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr)
            serve(*static_cast<TcpSocket*>(events[i].data.ptr), events[i].events);
        else
            accept_callers();
    }
}

void TcpEngine::watch_clock() {
    next_event = UINT64_MAX;
    for (size_t i = 0; i < sockets.size(); ++i) {
        TcpSocket& socket = *sockets[i];
        if (socket.state == TcpSocket::TcpState::open) {
            watch_socket(socket);
        } else if (now >= socket.deadline) {
            time_out(socket);
        } else {
            arm(socket.deadline);
        }
    }
    for (size_t i = 0; i < connections.size(); ++i) {
        Connection& connection = *connections[i];
        ConnectionParts& of = parts(connection);
        if (now >= of.redial_at) {
            of.redial_at = UINT64_MAX;
            dial_missing(connection);
        }
        arm(of.redial_at);
        watch_pause(connection);
        if (connection.state_ != Connection::CarrierState::waiting) continue;
        if (now < of.deadline) {
            arm(of.deadline);
            continue;
        }
        of.last_failure = "the peer was asked to connect to port " + std::to_string(port) + " and did not within " +
                          std::to_string(2 * options.connect_limit_ns / 1'000'000) + " ms";
        attempt_failed(connection);
    }
}

bool TcpEngine::poll(uint64_t time) {
    const bool was_away = now != 0 && time - now > kAwayNs;
    now = time;
    if (was_away) resume();
    ++polls;
    anything = false;
    for (size_t i = 0; i < hot.size();) {
        TcpSocket& socket = *hot[i];
        serve(socket, EPOLLIN);
        if (i >= hot.size() || hot[i] != &socket) continue;  // the hot socket was closed, or another one is at its index
        if (!socket.unread && polls - socket.last_active > kHotPolls)
            cool(i);
        else
            ++i;
    }
    if (hot.empty() || blocked > 0 || callers > 0 || polls % kAskEpollEvery == 0) handle_events();
    if (!to_pump.empty()) {
        const std::vector<Connection*> now_due = std::move(to_pump);
        to_pump.clear();
        for (Connection* connection : now_due) {
            parts(*connection).to_pump = false;  // dropped connections are still in `forgotten`
            if (connection->state_ == Connection::CarrierState::open) pump(*connection);
        }
    }
    if (now >= next_event) watch_clock();
    bury_doomed();
    buried.clear();
    forgotten.clear();
    return anything;
}

}  // namespace starling::network
