#include "launch/tree/listener.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "launch/tree/addresses.h"
#include "mpi.h"

namespace starling::launch {

namespace {
constexpr int kAcceptsAtOnce = 16;
}  // namespace

TreeListener::~TreeListener() {
    for (const int fd : sockets_) {
        loop_.forget(fd);
        close(fd);
    }
    for (const auto timer : {expiry_, burial_}) {
        if (timer != 0) loop_.cancel(timer);
    }
}

int TreeListener::open(const std::string& filter) {
    std::vector<std::string> addresses;
    if (const int error = own_addresses(filter, addresses); error != MPI_SUCCESS) return error;
    for (const std::string& address : addresses) {
        if (const int error = listen_on(address); error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

int TreeListener::listen_on(const std::string& address) {
    sockaddr_in name{};
    socket_address({address, 0}, name);
    socklen_t length = sizeof name;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
        const int error = errno;
        if (fd >= 0) close(fd);
        return fail(MPI_ERR_OTHER, "cannot listen on %s for other hosts' daemons: %s%s", address.c_str(), std::strerror(error),
                    limit_remedy(error));
    }
    sockets_.push_back(fd);
    endpoints_.push_back({address, ntohs(name.sin_port)});
    loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { on_connect(fd); });
    return MPI_SUCCESS;
}

void TreeListener::on_connect(int listener) {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        const int fd = loop_.accept(listener);
        if (fd < 0) return;
        admit(fd);
    }
}

void TreeListener::admit(int fd) {
    tune_socket(fd);
    // A daemon authenticates itself within a round trip. So if there are too many connections, the oldest is not from a daemon.
    if (unauthenticated_.size() >= kMaxStrangers) drop(unauthenticated_.begin());
    const auto it = unauthenticated_.insert(unauthenticated_.end(), {nullptr, EventLoop::Clock::now()});
    TreeConnection::Handlers handlers;
    handlers.on_open = [this, it] {
        auto connection = std::move(it->connection);
        unauthenticated_.erase(it);
        on_peer_(std::move(connection));
    };
    handlers.on_close = [this, it](const std::string&) { drop(it); };
    it->connection =
        std::make_unique<TreeConnection>(loop_, fd, Handshake::HandshakeRole::parent, credentials_, std::move(handlers));
    if (expiry_ == 0) expiry_ = loop_.after(kTimeToProve, [this] { expire(); });
}

void TreeListener::drop(std::list<Stranger>::iterator stranger) {
    stranger->connection->close();
    graves_.push_back(std::move(stranger->connection));
    unauthenticated_.erase(stranger);
    if (burial_ == 0) burial_ = loop_.after(std::chrono::milliseconds(0), [this] { bury(); });
}

void TreeListener::bury() {
    burial_ = 0;
    graves_.clear();
}

void TreeListener::expire() {
    expiry_ = 0;
    const auto now = EventLoop::Clock::now();
    while (!unauthenticated_.empty() && now - unauthenticated_.front().since >= kTimeToProve) drop(unauthenticated_.begin());
    if (unauthenticated_.empty()) return;
    const auto left = kTimeToProve - (now - unauthenticated_.front().since);
    expiry_ = loop_.after(std::chrono::ceil<std::chrono::milliseconds>(left), [this] { expire(); });
}

}  // namespace starling::launch
