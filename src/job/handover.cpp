#include "job/handover.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/state.h"

namespace starling::job {

namespace {

constexpr int kWaitMs = 5000;

STARLING_STATE const JobHeader* own_job = nullptr;

bool is_ours(int socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/// -1 if nobody listens, or another user.
int connect_keeper() {
    if (!own_job || own_job->control_socket[0] == '\0') return -1;
    sockaddr_un address;
    const std::string_view name(own_job->control_socket, strnlen(own_job->control_socket, sizeof own_job->control_socket));
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
    if (is_ours(socket)) return socket;
    close(socket);
    return -1;
}

/// Whether it was done; `answered`: the descriptor that came with the answer.
bool ask_keeper(Handover what, uint64_t inode, int descriptor, int& answered) {
    answered = -1;
    const int socket = connect_keeper();
    if (socket < 0) return false;
    const HandoverRequest request{what, 0, own_job->id, {own_job->secret[0], own_job->secret[1]}, inode};
    HandoverAnswer answer = 0;
    pollfd readable{socket, POLLIN, 0};
    const bool done = send_with(socket, &request, sizeof request, descriptor) && poll(&readable, 1, kWaitMs) == 1 &&
                      receive_with(socket, &answer, sizeof answer, answered) == sizeof answer && answer != 0;
    close(socket);
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
    if (got <= 0) return 0;
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof descriptor))
        std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
    return static_cast<size_t>(got);
}

void hand_over_through(const JobHeader& own) { own_job = &own; }

bool is_closed_to_others() { return prctl(PR_GET_DUMPABLE) != 1; }

bool hand_over(int descriptor, uint64_t inode) {
    int nothing;
    const bool done = ask_keeper(Handover::give, inode, descriptor, nothing);
    if (nothing >= 0) close(nothing);
    return done;
}

void take_back(uint64_t inode) {
    int nothing;
    ask_keeper(Handover::take_back, inode, -1, nothing);
    if (nothing >= 0) close(nothing);
}

int fetch_handed_over(uint64_t inode) {
    int descriptor;
    if (ask_keeper(Handover::fetch, inode, -1, descriptor)) return descriptor;
    if (descriptor >= 0) close(descriptor);
    return -1;
}

}  // namespace starling::job
