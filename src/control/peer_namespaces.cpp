#include "control/peer_namespaces.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace starling::control {

namespace {

/// Returns the first bytes of a file in /proc/<process>; "self" stands for this process.
std::string text_of(const std::string& process, const char* file) {
    char text[4096];
    const int fd = open(("/proc/" + process + "/" + file).c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) close(fd);
    return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : std::string();
}

/// Returns the process's numbers in the PID namespaces from that of /proc to its own, each after a tab; empty: unknown.
std::string numbers_of(const std::string& process) {
    constexpr std::string_view kName = "\nNSpid:";
    const std::string status = text_of(process, "status");
    const size_t at = status.find(kName);
    if (at == std::string::npos) return {};
    const size_t begin = at + kName.size();
    return status.substr(begin, status.find('\n', begin) - begin);
}

/// Returns whether all user ids are mapped to themselves: the host's user namespace, or one that root has made equivalent to it.
bool is_in_the_hosts_users(const std::string& process) {
    unsigned long first = 1, to = 1, count = 0;
    return std::sscanf(text_of(process, "uid_map").c_str(), "%lu %lu %lu", &first, &to, &count) == 3 && first == 0 && to == 0 &&
           count == 4294967295;
}

/// Decides by files of /proc that are readable by all. A process of a PID namespace below has more numbers than this one.
bool seems_to_share(pid_t process) {
    const std::string number = std::to_string(process), its = numbers_of(number);
    return its == "\t" + number && numbers_of("self") == "\t" + std::to_string(getpid()) && is_in_the_hosts_users("self") &&
           is_in_the_hosts_users(number);
}

/// Returns 1 if the namespaces of this kind are the same, 0 if they differ, and -1 if the kernel refuses to show the process's.
int compare(pid_t process, const char* kind) {
    char path[64], own[64], its[64];
    std::snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    const ssize_t own_length = readlink(path, own, sizeof own);
    std::snprintf(path, sizeof path, "/proc/%d/ns/%s", process, kind);
    const ssize_t its_length = readlink(path, its, sizeof its);
    if (its_length < 0 && errno == EACCES) return -1;
    return own_length > 0 && own_length == its_length && std::memcmp(own, its, static_cast<size_t>(own_length)) == 0;
}

}  // namespace

bool hides_namespaces(pid_t process) { return compare(process, "pid") < 0 && compare(process, "user") < 0; }

bool shares_namespaces(pid_t process) {
    const int pids = compare(process, "pid"), users = compare(process, "user");
    if (pids < 0 && users < 0) return seems_to_share(process);
    return pids == 1 && users == 1;
}

}  // namespace starling::control
