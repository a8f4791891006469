#include "control/well_known_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "control/local_socket.h"
#include "control/peer_namespaces.h"

namespace starling::control {

namespace {

constexpr int kPlaceMs = 1000;   ///< longest wait (ms) while the listen queue of this user's listener is full
constexpr int kStrangeMs = 100;  ///< longest wait if the listener may be another user's
/// Longest wait (ms) for the folder's lock, which another process of this user holds until it listens.
constexpr int kFolderMs = 2000;
constexpr size_t kPlainName = 60;

/// Opens a directory that belongs to this user and that no other user can enter, judging by its mode. Returns -1 for any other.
int open_own_directory(int at, const char* path) {
    const int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 077) == 0) return fd;
    if (fd >= 0) ::close(fd);
    return -1;
}

int open_runtime_directory() {
    const char* told = std::getenv("XDG_RUNTIME_DIR");
    if (told && told[0] == '/') {
        if (const int fd = open_own_directory(AT_FDCWD, told); fd >= 0) return fd;
    }
    return open_own_directory(AT_FDCWD, ("/run/user/" + std::to_string(geteuid())).c_str());
}

/// Opens the folder of our socket files. Returns -1 if there is none; `possible` is whether one can be made.
int open_folder(bool make, bool& possible) {
    const int above = open_runtime_directory();
    possible = above >= 0;
    if (!possible) return -1;
    if (make) mkdirat(above, "starling", 0700);
    const int folder = open_own_directory(above, "starling");
    ::close(above);
    return folder;
}

/// Builds an address whose path leads through the descriptor `folder`, so that it is short however long the directory's own path is.
bool address_in(int folder, const std::string& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name.c_str());
    return length > 0 && static_cast<size_t>(length) < sizeof address.sun_path;
}

int connect_file(int folder, const std::string& name, int wait_ms) {
    sockaddr_un address;
    if (!address_in(folder, name, address)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return connect_within(address, sizeof address, wait_ms);
}

bool lock(int folder) {
    for (int waited = 0; flock(folder, LOCK_EX | LOCK_NB) != 0; ++waited) {
        if (errno != EWOULDBLOCK || waited >= kFolderMs) return false;
        usleep(1000);
    }
    return true;
}

/// Returns whether a process listens at the socket file. Removes the file if that process has died.
bool answers(int folder, const std::string& name) {
    const int fd = connect_file(folder, name, 0);
    if (fd >= 0) ::close(fd);
    if (fd >= 0 || errno == EAGAIN) return true;
    if (errno == ECONNREFUSED) unlinkat(folder, name.c_str(), 0);
    return false;
}

/// Removes the socket files of processes that were killed.
void remove_dead(int folder) {
    DIR* entries = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!entries) return;
    while (const dirent* entry = readdir(entries))
        if (entry->d_type == DT_SOCK) answers(folder, entry->d_name);
    closedir(entries);
}

/// Returns the number of the process at the other end if it runs as this user: 0 if it has no number in this namespace. Otherwise -1.
pid_t own_process_at(int fd) {
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && length == sizeof peer;
    return known && peer.uid == geteuid() ? peer.pid : -1;
}

int connect_abstract(const WellKnownSocket& meeting, int which) {
    const int fd = connect_local(meeting.abstract(which), kStrangeMs / meeting.names());
    if (fd < 0 || is_own_peer(fd, meeting.anywhere)) return fd;
    const pid_t peer = own_process_at(fd);
    ::close(fd);
    errno = peer > 0 && hides_namespaces(peer) ? EACCES : EPERM;
    return -1;
}

}  // namespace

bool is_own_peer(int fd, bool anywhere) {
    const pid_t peer = own_process_at(fd);
    return peer >= 0 && (anywhere || (peer > 0 && shares_namespaces(peer)));
}

std::string held_name_problem(int error, const std::string& name) {
    const std::string remedy =
        "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or STARLING_UNIVERSE to a word of your own";
    if (error == EPERM)
        return "another user, or a process in another container, holds the abstract socket name '" + name + "'; " + remedy;
    if (error != EACCES) return {};
    return "a process of yours that /proc hides, or one in another container, holds the abstract socket name '" + name +
           "'; give starlingd's program file read permission, " + remedy;
}

int connect_at(const WellKnownSocket& meeting) {
    bool possible;
    const int folder = open_folder(false, possible);
    if (folder >= 0) {
        const int fd = connect_file(folder, meeting.name, kPlaceMs);
        const int error = errno;
        ::close(folder);
        if (fd >= 0) return fd;
        if (error == EAGAIN || error == EMFILE || error == ENFILE) {
            errno = error;
            return -1;
        }
    }
    bool strange = false, hidden = false;
    for (int which = 0; which < meeting.names(); ++which) {
        const int fd = connect_abstract(meeting, which);
        if (fd >= 0) return fd;
        if (errno == EMFILE || errno == ENFILE) return -1;
        hidden = hidden || errno == EACCES;
        strange = strange || hidden || errno == EPERM || errno == EAGAIN;
    }
    // EPERM or EACCES only if no process of this user can listen at any name. Otherwise the caller can start one.
    errno = !strange || meeting.spares != 0 || possible ? ECONNREFUSED : hidden ? EACCES : EPERM;
    return -1;
}

bool WellKnownListener::open(const WellKnownSocket& meeting) {
    bool possible;
    folder_ = open_folder(true, possible);
    if (folder_ >= 0 && !open_file(meeting.name) && errno == EADDRINUSE) {
        close();
        errno = EADDRINUSE;
        return false;
    }
    if (open_abstract(meeting) || (file_ >= 0 && errno != EADDRINUSE)) return true;
    const int error = errno;
    close();
    errno = error;
    return false;
}

bool WellKnownListener::open_file(const std::string& name) {
    sockaddr_un address;
    if (!address_in(folder_, name, address) || !lock(folder_)) return false;
    int error = 0;
    if (answers(folder_, name)) {
        error = EADDRINUSE;
    } else {
        remove_dead(folder_);
        file_ = listen_on(address, sizeof address);
        if (file_ < 0) error = errno;
    }
    flock(folder_, LOCK_UN);
    if (file_ >= 0) name_ = name;
    errno = error;
    return file_ >= 0;
}

// A process that already holds a name and then finds another listener of this user withdraws. So there are never two listeners, whatever
// names other users held when either of them checked.
bool WellKnownListener::open_abstract(const WellKnownSocket& meeting) {
    int error = EPERM, mine = -1;
    for (int which = 0; which < meeting.names() && mine < 0; ++which) {
        abstract_ = listen_local(meeting.abstract(which));
        if (abstract_ >= 0) mine = which;
        if (abstract_ < 0 && errno != EADDRINUSE) error = errno;
    }
    for (int which = 0; which < meeting.names(); ++which) {
        const int other = which == mine ? -1 : connect_abstract(meeting, which);
        if (other < 0 && errno == EACCES) error = EACCES;
        if (other < 0) continue;
        ::close(other);
        errno = EADDRINUSE;
        return false;
    }
    errno = error;
    return abstract_ >= 0;
}

void WellKnownListener::close() {
    if (file_ >= 0 && lock(folder_)) {
        unlinkat(folder_, name_.c_str(), 0);
        flock(folder_, LOCK_UN);
    }
    for (int* fd : {&file_, &abstract_, &folder_})
        if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

std::string daemon_socket_name() {
    std::string name = "starling-" + std::to_string(geteuid()) + "-names";
    const char* universe = std::getenv("STARLING_UNIVERSE");
    if (!universe || !*universe) return name;
    name.push_back('-');
    const char* c = universe;
    bool plain = true;
    for (; *c && name.size() < kPlainName; ++c) {
        const bool usual = std::isalnum(static_cast<unsigned char>(*c)) != 0 || *c == '_';
        plain = plain && usual;
        name.push_back(usual ? *c : '_');
    }
    if (plain && !*c) return name;
    // The hash keeps two universes with similar names apart.
    char rest[20];
    std::snprintf(rest, sizeof rest, "-%016" PRIx64, hash_on(kEmptyHash, universe));
    return name + rest;
}

}  // namespace starling::control
