// Where processes of one user find each other by a name that anybody can foretell: standing daemons, the keeper of names, the
// helper of a manager's job. Two doors lead to a meeting. One is a socket file in a folder of the user's runtime directory, which nobody
// else can enter. The other is an abstract socket, for processes that have no such directory or whose directory has gone with a login;
// another user may hold that name, and then it leads nowhere. docs/security.md says who is let in.
#pragma once

#include <string>
#include <string_view>

namespace starling::control {

struct WellKnownSocket {
    std::string name;  ///< of the file, and the abstract name
    int spares = 0;    ///< more than 0: the abstract name is the first of name-0, name-1... that is free
    bool anywhere =
        false;  ///< processes of the user in other containers are let in; for meetings where each proves something else

    std::string abstract(int which) const { return spares > 0 ? name + "-" + std::to_string(which) : name; }
    int names() const { return spares > 0 ? spares : 1; }
};

/// Connects, close-on-exec, to the one who listens there. Waits for nobody, but for this user's own listener where too many want it, and
/// that for a second. -1 with errno: ECONNREFUSED if none of ours listens, EPERM if others hold the only door there is.
int connect_at(const WellKnownSocket& meeting);

/// The listening side. Closes, and removes the file, when destroyed.
class WellKnownListener {
  public:
    WellKnownListener() = default;
    WellKnownListener(const WellKnownListener&) = delete;
    WellKnownListener& operator=(const WellKnownListener&) = delete;
    ~WellKnownListener() { close(); }

    /// Opens both, or the one that can be had. False with errno: EADDRINUSE if one of this user's listens there, EPERM if others hold
    /// the only door there is.
    bool open(const WellKnownSocket& meeting);
    void close();

    int file() const { return file_; }          ///< the listener there, non-blocking; -1: none
    int abstract() const { return abstract_; }  ///< as above

  private:
    bool open_file(const std::string& name);
    bool open_abstract(const WellKnownSocket& meeting);

    int file_ = -1;
    int abstract_ = -1;
    int folder_ = -1;
    std::string name_;
};

/// Whether the peer of an abstract socket is this user, and sees and is seen by this process as any other of the user: its namespaces of
/// processes and of users are ours. (Abstract names belong to the namespace of the network alone, which containers may share.)
bool is_own_peer(int fd, bool anywhere);

/// "starling-<uid>-names[-<STARLING_UNIVERSE>]": the keeper of names of this user's universe.
std::string daemon_socket_name();

}  // namespace starling::control
