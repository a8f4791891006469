// Sockets with names that every process of a user can compute: for standing daemons, the name service, the helper of a foreign manager's
// job. Each is reachable in two ways. One is a socket file in a folder of the user's runtime directory, which no other user can enter. The
// other is an abstract socket, for processes without such a directory and for directories that vanish at logout. Another user may have
// taken the abstract name; then only the file works. docs/security.md says which processes may connect.
#pragma once

#include <string>
#include <string_view>

namespace starling::control {

struct WellKnownSocket {
    std::string name;  ///< name of the socket file, and of the abstract socket
    int spares = 0;    ///< more than 0: the abstract name is the first free one of name-0, name-1...
    bool anywhere =
        false;  ///< whether to accept the user's processes in other containers, for protocols that authenticate by other means

    std::string abstract(int which) const { return spares > 0 ? name + "-" + std::to_string(which) : name; }
    int names() const { return spares > 0 ? spares : 1; }
};

/// Connects to the listening process, close-on-exec. Does not wait, except for a second if the queue of this user's own listener is full.
/// Returns -1 with errno: ECONNREFUSED if no process of this user listens, EPERM if others hold the only possible name, EACCES if a process
/// of this user holds it whose namespaces are not shown.
int connect_at(const WellKnownSocket& meeting);

/// The listening side. Closes both sockets and removes the file when destroyed.
class WellKnownListener {
  public:
    WellKnownListener() = default;
    WellKnownListener(const WellKnownListener&) = delete;
    WellKnownListener& operator=(const WellKnownListener&) = delete;
    ~WellKnownListener() { close(); }

    /// Opens both sockets, or the one that can be had. Returns false with errno: EADDRINUSE if a process of this user already listens
    /// there, EPERM or EACCES if others hold the only possible name, as for connect_at().
    bool open(const WellKnownSocket& meeting);
    void close();

    int file() const { return file_; }          ///< listener of the socket file, non-blocking; -1: none
    int abstract() const { return abstract_; }  ///< listener of the abstract name, non-blocking; -1: none

  private:
    bool open_file(const std::string& name);
    bool open_abstract(const WellKnownSocket& meeting);

    int file_ = -1;
    int abstract_ = -1;
    int folder_ = -1;
    std::string name_;
};

/// Returns whether the peer of an abstract socket runs as this user and, unless `anywhere`, in this process's PID and user namespaces.
/// (Abstract names belong to the network namespace alone, which containers may share.)
bool is_own_peer(int fd, bool anywhere);

/// Returns a sentence for the user, with remedies, about EPERM or EACCES from connect_at() or open(); an empty one for other errors.
std::string held_name_problem(int error, const std::string& name);

/// Returns "starling-<uid>-names[-<STARLING_UNIVERSE>]": the name service of this user's universe.
std::string daemon_socket_name();

}  // namespace starling::control
