// Abstract Unix sockets between processes of one user.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace starling::control {

/// Connects (blocking) to the abstract name, close-on-exec. -1 with errno if nobody listens; -1 with errno
/// EPERM if another user does. Not `may_wait`: -1 with errno EAGAIN if so many wait for the listener that there is no place
/// for one more. What is sent then blocks as ever.
int connect_local(std::string_view name, bool may_wait = true);

/// Binds and listens, non-blocking and close-on-exec. -1 with errno; EADDRINUSE if someone has the name.
int listen_local(std::string_view name);

/// True if the process at the other end runs as this user or as root.
bool is_trusted_peer(int fd);

/// Sends all of it, without SIGPIPE. Blocks. False with errno.
bool send_all(int fd, std::string_view bytes);

/// "starling-<uid>-names[-<STARLING_UNIVERSE>]": the daemon of this user's universe.
std::string daemon_socket_name();

}  // namespace starling::control
