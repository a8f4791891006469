#include "control/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace starling::control {

namespace {

socklen_t address_of(std::string_view name, sockaddr_un& address) {
    std::memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    const size_t length = name.size() < sizeof address.sun_path - 1 ? name.size() : sizeof address.sun_path - 1;
    std::memcpy(address.sun_path + 1, name.data(), length);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

int close_failed(int fd, int error) {
    close(fd);
    errno = error;
    return -1;
}

}  // namespace

bool is_trusted_peer(int fd) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

int connect_within(const sockaddr_un& address, socklen_t length, int wait_ms) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    // Use a non-blocking connect(): the name may belong to another user now, whose listener would decide how long a blocking one takes.
    for (int waited = 0; connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0; ++waited) {
        if ((errno != EAGAIN && errno != EINTR) || waited >= wait_ms) return close_failed(fd, errno);
        if (errno == EAGAIN) usleep(1000);
    }
    fcntl(fd, F_SETFL, 0);
    if (!is_trusted_peer(fd)) return close_failed(fd, EPERM);
    return fd;
}

int listen_on(const sockaddr_un& address, socklen_t length) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(fd, 1024) != 0) {
        return close_failed(fd, errno);
    }
    return fd;
}

int connect_local(std::string_view name, int wait_ms) {
    sockaddr_un address;
    const socklen_t length = address_of(name, address);
    return connect_within(address, length, wait_ms);
}

int listen_local(std::string_view name) {
    sockaddr_un address;
    const socklen_t length = address_of(name, address);
    return listen_on(address, length);
}

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
}

}  // namespace starling::control
