// Unix sockets between processes of one user.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <string_view>

namespace starling::control {

/// Time for a place in a listener's queue: what is due to our own launcher.
inline constexpr int kLauncherMs = 30'000;

/// Connects to the abstract name, close-on-exec. -1 with errno if nobody listens; EPERM if another user does; EAGAIN if so many wait for the
/// listener, whoever that is, that there was no place for one more within `wait_ms`. What is sent then blocks as ever.
int connect_local(std::string_view name, int wait_ms);

/// Binds the abstract name and listens, non-blocking and close-on-exec. -1 with errno; EADDRINUSE if someone has the name.
int listen_local(std::string_view name);

/// The same for any address.
int connect_within(const sockaddr_un& address, socklen_t length, int wait_ms);
int listen_on(const sockaddr_un& address, socklen_t length);

/// True if the process at the other end runs as this user or as root.
bool is_trusted_peer(int fd);

/// Sends all of it, without SIGPIPE. Blocks. False with errno.
bool send_all(int fd, std::string_view bytes);

}  // namespace starling::control
