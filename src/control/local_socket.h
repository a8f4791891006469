// Unix sockets between processes of one user.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <string_view>

namespace starling::control {

/// Longest wait (ms) until the listen queue of this process's own launcher accepts a connection.
inline constexpr int kLauncherMs = 30'000;

/// Connects to the abstract name, close-on-exec. Returns -1 with errno: ECONNREFUSED if no process listens, EPERM if another user's does,
/// EAGAIN if the listener's queue was full for `wait_ms`, even if the listener is another user's. The returned socket blocks on send.
int connect_local(std::string_view name, int wait_ms);

/// Binds the abstract name and listens, non-blocking and close-on-exec. Returns -1 with errno; EADDRINUSE if another process has the name.
int listen_local(std::string_view name);

/// Variants of connect_local() and listen_local() for a Unix socket address of any kind.
int connect_within(const sockaddr_un& address, socklen_t length, int wait_ms);
int listen_on(const sockaddr_un& address, socklen_t length);

/// Returns whether the process at the other end runs as this user or as root.
bool is_trusted_peer(int fd);

/// Sends all bytes, without SIGPIPE. Blocks. Returns false with errno.
bool send_all(int fd, std::string_view bytes);

}  // namespace starling::control
