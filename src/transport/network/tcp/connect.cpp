// Opening of connections: offers, callers (accepted sockets before their greeting), the greeting, and rails that appear and disappear.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/reserve.h"
#include "mpi.h"
#include "transport/network/tcp/engine.h"
#include "transport/network/tcp/socket.h"

namespace starling::network {

namespace {

constexpr int kMostCallers = 32;  ///< most accepted sockets that have not sent their whole greeting
constexpr int kAcceptsAtOnce = 64;
constexpr uint64_t kCallerLimitNs = 2'000'000'000;
constexpr size_t kMostSockets = 16;  ///< most sockets of one connection
constexpr uint64_t kFirstPauseNs = 1'000'000'000, kLongestPauseNs = 30'000'000'000;

std::string trouble(const TcpSocket& socket, uint16_t port, const char* what) {
    return std::string(print_address(socket.rail.remote, port)) + ": " + what;
}

uint32_t local_address(int fd, bool of_peer) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    const auto ask = of_peer ? getpeername : getsockname;
    return ask(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? address.sin_addr.s_addr : 0;
}

}  // namespace

/// Opens a listener on a local address. Returns false with errno on failure.
bool TcpEngine::listen_on(uint32_t address) {
    make_room(listeners);
    const int fd = open_listener(address, port);
    if (fd < 0) return false;
    epoll_event event{EPOLLIN, {.ptr = nullptr}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return false;
    }
    listeners.push_back({fd, address});
    return true;
}

// Opens the listeners if there are none. An address whose port another process uses is skipped: callers try all addresses.
int TcpEngine::ensure_listeners() {
    if (!listeners.empty()) return MPI_SUCCESS;
    errno = EADDRNOTAVAIL;
    if (!options.on_rails_alone)
        listen_on(0);
    else
        for (const TcpRail& rail : rails) listen_on(rail.address);
    if (listeners.empty())
        return fail(MPI_ERR_OTHER, "cannot open a socket to listen for connections from other hosts: %s", strerror(errno));
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return MPI_SUCCESS;
}

int TcpEngine::offer(Connection& connection, ConnectionOffer& out) {
    ConnectionParts& of = parts(connection);
    if (const int error = ensure_listeners()) return error;
    if (of.token == 0) of.token = draw_random_number();
    out = {};
    out.token = of.token;
    out.port = port;
    out.version = static_cast<uint8_t>(version());
    for (const TcpRail& rail : rails)
        if (out.addresses < kOfferedAddresses) out.address[out.addresses++] = rail.address;
    if (connection.state_ != Connection::CarrierState::idle) return MPI_SUCCESS;
    connection.state_ = Connection::CarrierState::waiting;
    of.deadline = now_ns() + 2 * options.connect_limit_ns;
    arm(of.deadline);
    return MPI_SUCCESS;
}

int TcpEngine::dial(Connection& connection, const ConnectionOffer& theirs) {
    ConnectionParts& of = parts(connection);
    if (connection.state_ == Connection::CarrierState::waiting) {
        if (options.self < connection.peer) return MPI_SUCCESS;  // both sent offers: the higher process connects
        connection.state_ = Connection::CarrierState::idle;
        of.token = 0;
    }
    if (connection.state_ != Connection::CarrierState::idle) return MPI_SUCCESS;
    if (theirs.version != version())
        return fail(MPI_ERR_OTHER,
                    "the peer offers version %u of the connection protocol and this process has version %u; "
                    "use one version of Starling",
                    theirs.version, version());
    if (theirs.addresses == 0 || theirs.addresses > kOfferedAddresses || theirs.port == 0)
        return fail(MPI_ERR_OTHER, "the peer's offer of a connection contains no valid address");
    connection.state_ = Connection::CarrierState::dialling;
    of.theirs = theirs;
    of.dialler = true;
    dial_missing(connection);
    return MPI_SUCCESS;
}

void TcpEngine::dial_missing(Connection& connection) {
    ConnectionParts& of = parts(connection);
    if (connection.finished_) return;
    bool routed = false;
    std::vector<RailPair> ways = pair_rails(rails, {of.theirs.address, of.theirs.addresses}, routed);
    // Addresses that are reached through routers need only one socket: all are tried, and the first that answers is used.
    if (routed && of.primary) ways = {{0, of.primary->rail.remote}};
    const uint32_t each = routed && !of.primary ? 1 : options.sockets_per_rail;
    for (const RailPair way : ways) {
        const auto there = std::count_if(of.sockets.begin(), of.sockets.end(), [&](const TcpSocket* socket) {
            return !socket->doomed && socket->rail.remote == way.remote && (routed || socket->rail.local == way.local);
        });
        for (auto i = static_cast<uint32_t>(there); i < each && of.sockets.size() < kMostSockets; ++i)
            dial_one(connection, way);
    }
    if (of.sockets.empty()) attempt_failed(connection);
}

void TcpEngine::dial_one(Connection& connection, RailPair way) {
    ConnectionParts& of = parts(connection);
    const int fd = begin_connect(way.local, way.remote, of.theirs.port, options);
    if (fd < 0) {
        const int error = errno;
        of.last_failure = std::string(print_address(way.remote, of.theirs.port)) + ": " + strerror(error);
        if (error == EMFILE || error == ENFILE) of.last_failure += "; raise the limit of open files (ulimit -n)";
        return;
    }
    TcpSocket& socket = adopt(fd, TcpSocket::TcpState::connecting, &connection);
    socket.rail = way;
    socket.deadline = now_ns() + options.connect_limit_ns;
    arm(socket.deadline);
}

void TcpEngine::attempt_failed(Connection& connection) {
    ConnectionParts& of = parts(connection);
    if (connection.state_ == Connection::CarrierState::open) {
        if (!of.dialler || connection.finished_) return;
        of.redial_pause = std::clamp(2 * of.redial_pause, kFirstPauseNs, kLongestPauseNs);
        of.redial_at = now_ns() + of.redial_pause;
        arm(of.redial_at);
        return;
    }
    const bool trying =
        connection.state_ == Connection::CarrierState::dialling || connection.state_ == Connection::CarrierState::waiting;
    if (!trying || !of.sockets.empty()) return;
    connection.state_ = Connection::CarrierState::idle;
    of.dialler = false;
    of.token = 0;
    ++counters.failed;
    fail(MPI_ERR_OTHER, "cannot connect: %s", of.last_failure.c_str());
    upcalls.failed(connection);
}

void TcpEngine::time_out(TcpSocket& socket) {
    if (socket.state == TcpSocket::TcpState::caller) {
        ++counters.rejected;
        return close_socket(socket);
    }
    const uint16_t to = parts(*socket.connection).theirs.port;
    const std::string limit = std::to_string(options.connect_limit_ns / 1'000'000) + " ms";
    doom(socket, trouble(socket, to, ("no answer within " + limit + "; does a firewall drop TCP packets to it?").c_str()));
}

void TcpEngine::on_connected(TcpSocket& socket) {
    ConnectionParts& of = parts(*socket.connection);
    if (const int error = connect_error(socket.fd)) {
        std::string why = strerror(error);
        if (error == ECONNREFUSED) why += "; has its process ended, or does a firewall reject what is sent there?";
        return doom(socket, trouble(socket, of.theirs.port, why.c_str()));
    }
    TcpHello& hello = socket.said.hello;
    hello.version = version();
    hello.job = options.self.job;
    hello.rank = options.self.rank;
    hello.target_job = socket.connection->peer.job;
    hello.target_rank = socket.connection->peer.rank;
    hello.key = of.peer_key;
    hello.token = of.theirs.token;
    hello.opens_aes = options.cipher && options.cipher->has_aes;
    if (options.cipher) socket.said.salt = draw_greeting_salt();
    const size_t bytes = options.cipher ? sizeof(SealedHello) : sizeof(TcpHello);
    if (::send(socket.fd, &socket.said, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
        return doom(socket, trouble(socket, of.theirs.port, strerror(errno)));
    if (socket.rail.local == 0) socket.rail.local = local_address(socket.fd, false);
    socket.state = TcpSocket::TcpState::greeting;
}

// Reads exactly the greeting, and leaves what follows to the frame reader. Returns whether the greeting is complete.
bool TcpEngine::read_words(TcpSocket& socket, size_t wanted) {
    while (socket.word_bytes < wanted) {
        const ssize_t n = recv(socket.fd, socket.words + socket.word_bytes, wanted - socket.word_bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n <= 0) {
            const char* why = n == 0 ? "it closed the connection before it answered" : strerror(errno);
            const uint16_t to = socket.connection ? parts(*socket.connection).theirs.port : uint16_t{0};
            if (!socket.connection) ++counters.rejected;
            doom(socket, trouble(socket, to, why));
            return false;
        }
        socket.word_bytes += static_cast<size_t>(n);
    }
    return true;
}

void TcpEngine::on_welcome(TcpSocket& socket) {
    if (!read_words(socket, options.cipher ? sizeof(SealedWelcome) : sizeof(TcpWelcome))) return;
    SealedWelcome words;
    std::memcpy(&words, socket.words, sizeof words);
    if (const char* why = refusal(words.welcome, options.key, version()))
        return doom(socket, trouble(socket, parts(*socket.connection).theirs.port, why));
    if (!options.cipher || prove(socket, words)) become_open(socket);
}

/// Checks the listener's proof of the pair's key, and sends our own.
bool TcpEngine::prove(TcpSocket& socket, const SealedWelcome& words) {
    const ConnectionParts& of = parts(*socket.connection);
    const GreetingKeys keys = keys_of(*options.cipher, of.pair, socket.said, words);
    const char* why = nullptr;
    if (!options.cipher->equal(&words.proof, &keys.listener_proof, sizeof words.proof))
        why = "the process that answered does not have the key, or its answer was changed on the way";
    else if (::send(socket.fd, &keys.caller_proof, sizeof keys.caller_proof, MSG_NOSIGNAL) != sizeof keys.caller_proof)
        why = strerror(errno);
    if (why) {
        doom(socket, trouble(socket, of.theirs.port, why));
        return false;
    }
    const Suite suite = words.welcome.uses_aes && socket.said.hello.opens_aes ? Suite::aes : Suite::chacha;
    socket.seal = std::make_unique<SocketSeal>(*options.cipher, suite, keys.caller, keys.listener);
    return true;
}

void TcpEngine::on_hello(TcpSocket& socket) {
    if (socket.seal) return on_proof(socket);
    const size_t bytes = options.cipher ? sizeof(SealedHello) : sizeof(TcpHello);
    if (!read_words(socket, bytes)) return;
    std::memcpy(&socket.said, socket.words, bytes);
    Connection* called = nullptr;
    const HandshakeAnswer answered = find_called(socket.said.hello, called);
    // A caller that does not belong to the universe gets no reply. A caller of another version gets one, so that it can report the reason
    // to its user.
    const bool stranger = classify(socket.said.hello, options.self, options.key, version()) == Greeting::stranger;
    const bool said = !stranger && answer(socket, answered, called);
    if (answered == HandshakeAnswer::welcome && said) return options.cipher ? on_proof(socket) : admit(socket, *called);
    ++counters.rejected;
    if (answered != HandshakeAnswer::welcome) close_socket(socket);
}

// Admits the caller if its proof is correct. The TcpHello alone proves nothing, since it could be a replay. The connection is searched
// again because it may have been dropped meanwhile.
void TcpEngine::on_proof(TcpSocket& socket) {
    if (!read_words(socket, sizeof(SealedHello) + sizeof(GreetingProof))) return;
    Connection* called = nullptr;
    if (options.cipher->equal(socket.words + sizeof(SealedHello), &socket.seal->awaited, sizeof(GreetingProof)) &&
        find_called(socket.said.hello, called) == HandshakeAnswer::welcome)
        return admit(socket, *called);
    ++counters.rejected;
    close_socket(socket);
}

/// Finds the connection that the caller's TcpHello names.
HandshakeAnswer TcpEngine::find_called(const TcpHello& hello, Connection*& called) {
    switch (classify(hello, options.self, options.key, version())) {
        case Greeting::stranger:
            return HandshakeAnswer::not_expected;
        case Greeting::other_version:
            return HandshakeAnswer::wrong_version;
        case Greeting::fits:
            break;
    }
    const ProcessId caller{hello.job, hello.rank};
    for (auto& one : connections) {
        const ConnectionParts& of = parts(*one);
        if (one->peer != caller || of.token == 0 || of.token != hello.token || one->finished_) continue;
        if (of.sockets.size() >= kMostSockets) return HandshakeAnswer::too_many;
        called = one.get();
        return HandshakeAnswer::welcome;
    }
    return HandshakeAnswer::not_expected;
}

/// Adds the socket to the connection.
void TcpEngine::admit(TcpSocket& socket, Connection& called) {
    socket.connection = &called;
    parts(called).sockets.push_back(&socket);
    socket.rail = {local_address(socket.fd, false), local_address(socket.fd, true)};
    --callers;
    become_open(socket);
}

bool TcpEngine::answer(TcpSocket& socket, HandshakeAnswer answer, Connection* called) {
    SealedWelcome words{};
    words.welcome.version = version();
    words.welcome.answer = answer;
    words.welcome.key = called ? parts(*called).peer_key : 0;
    size_t bytes = sizeof(TcpWelcome);
    if (options.cipher) {
        bytes = sizeof words;
        words.salt = draw_greeting_salt();
        const bool aes = options.cipher->has_aes && socket.said.hello.opens_aes == 1;
        words.welcome.uses_aes = aes;
        if (called) {
            const GreetingKeys keys = keys_of(*options.cipher, parts(*called).pair, socket.said, words);
            words.proof = keys.listener_proof;
            socket.seal =
                std::make_unique<SocketSeal>(*options.cipher, aes ? Suite::aes : Suite::chacha, keys.listener, keys.caller);
            socket.seal->awaited = keys.caller_proof;
        }
    }
    if (::send(socket.fd, &words, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes)) return true;
    if (called) doom(socket, trouble(socket, port, strerror(errno)));
    return false;
}

void TcpEngine::become_open(TcpSocket& socket) {
    Connection& connection = *socket.connection;
    ConnectionParts& of = parts(connection);
    socket.state = TcpSocket::TcpState::open;
    ++counters.sockets;
    anything = true;
    heat(socket);
    socket.unread = true;  // frames may have arrived right after the greeting
    of.redial_pause = 0;
    if (connection.state_ == Connection::CarrierState::open) {
        pump(connection);
        return;
    }
    connection.state_ = Connection::CarrierState::open;
    of.deadline = UINT64_MAX;
    of.primary = &socket;
    ++counters.opened;
    ++counters.connections;
    if (of.dialler) {
        bool routed = false;
        pair_rails(rails, {of.theirs.address, of.theirs.addresses}, routed);
        if (routed) {
            const std::vector<TcpSocket*> others = of.sockets;
            for (TcpSocket* other : others)
                if (other->state != TcpSocket::TcpState::open) close_socket(*other);
            dial_missing(connection);
        }
    }
    upcalls.opened(connection);
}

bool TcpEngine::reject_without_descriptors(const Listener& listener) {
    if (errno != EMFILE && errno != ENFILE) return false;
    if (!warned_descriptors)
        std::fprintf(stderr,
                     "starling: no descriptor is left for connections from other hosts; messages use UDP instead (raise "
                     "the limit of open files, ulimit -n)\n");
    warned_descriptors = true;
    if (spare < 0) return false;
    close(spare);
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) close(fd);
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

void TcpEngine::accept_callers() {
    for (size_t i = 0; i < listeners.size(); ++i) accept_from(listeners[i]);
}

void TcpEngine::accept_from(const Listener& listener) {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR || reject_without_descriptors(listener)) continue;
            return;
        }
        if (callers >= kMostCallers) {
            const auto oldest = std::find_if(sockets.begin(), sockets.end(),
                                             [](auto& socket) { return socket->state == TcpSocket::TcpState::caller; });
            ++counters.rejected;
            close_socket(**oldest);
        }
        tune(fd, options);
        TcpSocket& socket = adopt(fd, TcpSocket::TcpState::caller, nullptr);
        socket.deadline = now_ns() + kCallerLimitNs;
        arm(socket.deadline);
    }
}

void TcpEngine::set_rails(std::span<const TcpRail> usable) {
    if (std::equal(rails.begin(), rails.end(), usable.begin(), usable.end())) return;
    rails.assign(usable.begin(), usable.end());
    for (const TcpRail& rail : rails) {
        const auto is_there = [&](const Listener& listener) {
            return listener.address == 0 || listener.address == rail.address;
        };
        if (!listeners.empty() && std::none_of(listeners.begin(), listeners.end(), is_there)) listen_on(rail.address);
    }
    const auto usable_address = [&](uint32_t address) {
        return std::any_of(rails.begin(), rails.end(), [&](const TcpRail& rail) { return rail.address == address; });
    };
    for (auto& socket : sockets)
        if (socket->rail.local != 0 && !usable_address(socket->rail.local))
            doom(*socket,
                 std::string("the interface with address ") + print_address(socket->rail.local, 0) + " is no longer usable");
    for (size_t i = 0; i < connections.size(); ++i) {
        Connection& connection = *connections[i];
        if (connection.state_ != Connection::CarrierState::open || connection.finished_) continue;
        if (parts(connection).dialler)
            dial_missing(connection);
        else
            send_addresses(connection);
    }
}

void TcpEngine::lose_remote(Connection& connection, uint32_t address) {
    for (TcpSocket* socket : parts(connection).sockets)
        if (socket->rail.remote == address)
            doom(*socket,
                 std::string("the peer's interface with address ") + print_address(address, 0) + " is no longer usable");
}

// Sends the listening side's new rails to the side that dialed, over the connection, because only that side opens sockets.
void TcpEngine::send_addresses(Connection& connection) {
    ConnectionParts& of = parts(connection);
    uint32_t list[kOfferedAddresses];
    uint32_t count = 0;
    for (const TcpRail& rail : rails)
        if (count < kOfferedAddresses) list[count++] = rail.address;
    of.addresses_wanted = false;
    if (count == 0 || !of.primary) return;
    const iovec contents{list, count * sizeof list[0]};
    of.addresses_wanted = write_frame(*of.primary, TcpFrameKind::addresses, &contents, 1) == SendResult::busy;
}

bool TcpEngine::handle_addresses(Connection& connection, const std::byte* contents, size_t bytes) {
    ConnectionParts& of = parts(connection);
    if (!of.dialler) return false;
    of.theirs.addresses = static_cast<uint8_t>(bytes / sizeof(uint32_t));
    std::memcpy(of.theirs.address, contents, of.theirs.addresses * sizeof(uint32_t));
    dial_missing(connection);
    return true;
}

}  // namespace starling::network
