#include "job/descriptor_passing.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/state.h"
#include "job/environment.h"

namespace starling::job {

namespace {

constexpr int kWaitMs = 5000;

STARLING_STATE const JobHeader* own_job = nullptr;

/// A descriptor that this process has deposited with the launcher, or will deposit when there is a launcher.
struct GivenDescriptor {
    int descriptor;
    uint64_t inode;
};
STARLING_STATE std::vector<GivenDescriptor>* given = nullptr;

/// Returns whether this process's user namespace maps the user to a number. It shows all users that it does not map as one number.
bool has_number(uid_t user) {
    constexpr uid_t kNobody = 65534;  // /proc/sys/kernel/overflowuid
    return user != kNobody;
}

/// Returns whether the peer of a socket is the broker. `keeper` is the pid that the broker must have; 0 if not known. A peer whose PID
/// namespace is not visible here is shown as pid 0, which is accepted if the user namespace maps this user.
bool is_ours(int socket, pid_t keeper) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0) &&
           (keeper == 0 || peer.pid == keeper || (peer.pid == 0 && has_number(geteuid())));
}

/// Connects to the broker. Returns -1 if no process listens there, or only one of another user.
int connect_keeper(std::string_view name, pid_t keeper) {
    if (name.empty()) return -1;
    sockaddr_un address;
    const socklen_t length = keeper_address(name, address);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return -1;
    int waited = 0;
    while (connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        if ((errno != EAGAIN && errno != EINTR) || waited++ >= kWaitMs) {
            close(socket);
            return -1;
        }
        usleep(1000);
    }
    if (is_ours(socket, keeper)) return socket;
    close(socket);
    return -1;
}

/// Sends a request and returns whether it was carried out. `answered`: the descriptor that came with the reply; -1 if there is none or the
/// request failed.
bool call_broker(int socket, const DescriptorRequest& request, int descriptor, int& answered) {
    answered = -1;
    if (socket < 0) return false;
    DescriptorReply answer = 0;
    pollfd readable{socket, POLLIN, 0};
    const bool done = send_with(socket, &request, sizeof request, descriptor) && poll(&readable, 1, kWaitMs) == 1 &&
                      receive_with(socket, &answer, sizeof answer, answered) == sizeof answer && answer != 0;
    close(socket);
    if (!done && answered >= 0) close(std::exchange(answered, -1));
    return done;
}

/// Sends a request, in the name of this process's own job, to that job's launcher.
bool call_own_broker(DescriptorRequest request, int descriptor, int& answered) {
    answered = -1;
    if (!own_job) return false;
    const std::string_view name(own_job->control_socket, strnlen(own_job->control_socket, sizeof own_job->control_socket));
    request.job = own_job->id;
    std::copy(std::begin(own_job->secret), std::end(own_job->secret), request.secret);
    return call_broker(connect_keeper(name, 0), request, descriptor, answered);
}

DescriptorRequest request_of(DescriptorCall what, uint64_t inode) {
    DescriptorRequest request{};
    request.what = what;
    request.inode = inode;
    return request;
}

/// Stores the first descriptor that came with a message, and closes all others, because the kernel has opened them in this process too.
void receive_descriptors(msghdr& message, int& descriptor) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof descriptor;
        for (size_t i = 0; i < count; ++i) {
            int each;
            std::memcpy(&each, CMSG_DATA(part) + i * sizeof each, sizeof each);
            if (descriptor < 0)
                descriptor = each;
            else
                close(each);
        }
    }
}

bool deposit(int descriptor, uint64_t inode) {
    int nothing;
    const bool done = call_own_broker(request_of(DescriptorCall::deposit, inode), descriptor, nothing);
    if (nothing >= 0) close(nothing);
    return done;
}

}  // namespace

socklen_t keeper_address(std::string_view control_socket, sockaddr_un& address) {
    constexpr std::string_view kKeeper = "-memory";
    address = {};
    address.sun_family = AF_UNIX;
    const size_t length = std::min(control_socket.size(), sizeof address.sun_path - 1 - kKeeper.size());
    control_socket.copy(address.sun_path + 1, length);
    kKeeper.copy(address.sun_path + 1 + length, kKeeper.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length + kKeeper.size());
}

bool send_with(int socket, const void* packet, size_t bytes, int descriptor) {
    iovec part{const_cast<void*>(packet), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    ssize_t sent;
    do { sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
}

size_t receive_with(int socket, void* packet, size_t room, int& descriptor) {
    descriptor = -1;
    iovec part{packet, room};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got;
    do { got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); } while (got < 0 && errno == EINTR);
    if (got < 0) return 0;
    receive_descriptors(message, descriptor);
    if (got == 0 && descriptor >= 0) close(std::exchange(descriptor, -1));
    return static_cast<size_t>(got);
}

bool launcher_listens(const JobHeader& job) {
    const std::string_view name(job.control_socket, strnlen(job.control_socket, sizeof job.control_socket));
    if (name.empty()) return true;
    const int socket = connect_keeper(name, 0);
    if (socket >= 0) close(socket);
    return socket >= 0;
}

void deposit_through(const JobHeader& own) { own_job = &own; }

bool is_closed_to_others() { return !knows_pids() || !proc_shows_pids() || prctl(PR_GET_DUMPABLE) != 1; }

bool deposit_descriptor(int descriptor, uint64_t inode) {
    if (!own_job) return false;
    if (own_job->control_socket[0] != '\0' && !deposit(descriptor, inode)) return false;
    if (!given) given = new std::vector<GivenDescriptor>;
    given->push_back({descriptor, inode});
    return true;
}

void deposit_again() {
    if (!given) return;
    for (const GivenDescriptor& each : *given) deposit(each.descriptor, each.inode);
}

void withdraw_descriptor(uint64_t inode) {
    if (given) std::erase_if(*given, [inode](const GivenDescriptor& each) { return each.inode == inode; });
    int nothing;
    call_own_broker(request_of(DescriptorCall::withdraw_descriptor, inode), -1, nothing);
    if (nothing >= 0) close(nothing);
}

int fetch_deposited(int32_t pid, int32_t descriptor, uint64_t inode) {
    DescriptorRequest request = request_of(DescriptorCall::fetch, inode);
    request.pid = pid;
    request.descriptor = descriptor;
    int found;
    call_own_broker(request, -1, found);
    return found;
}

int fetch_segment(const JobAddress& address) {
    DescriptorRequest request = request_of(DescriptorCall::segment, 0);
    request.wanted = address.id;
    request.pid = address.owner_pid;
    request.descriptor = address.owner_fd;
    int found;
    if (own_job) {
        call_own_broker(request, -1, found);
        return found;
    }
    const char* launcher = std::getenv(kLauncherVariable);
    request.job = address.id;
    call_broker(connect_keeper(launcher ? launcher : "", address.owner_pid), request, -1, found);
    return found;
}

}  // namespace starling::job
