#include "job/doorbell.h"

#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "base/state.h"

namespace starling::job {

namespace {

/// Returns the one socket from which this process wakes all other processes; creates it at first use.
int ringing_socket() {
    STARLING_STATE static std::atomic<int> made{-1};
    int fd = made.load(std::memory_order_acquire);
    if (fd >= 0) return fd;
    const int mine = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mine >= 0 && !made.compare_exchange_strong(fd, mine)) {
        close(mine);  // another thread was faster
        return fd;
    }
    return mine;
}

// Failures are ignored: if the queue is full, earlier datagrams wake the receiver, and no thread sleeps on a socket that no longer exists.
void write_to_wake_socket(const Doorbell& doorbell) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const uint32_t length = doorbell.wake_name_length;
    if (length == 0 || length > sizeof doorbell.wake_name) return;
    std::memcpy(address.sun_path + 1, doorbell.wake_name, length);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    const char word = 1;
    const int saved = errno;
    sendto(ringing_socket(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
    errno = saved;
}

/// Maximum number of wake datagrams to read in one call. Peers that wait for room ring at every poll, so a loop that reads all datagrams
/// may not end before the owner has polled and made room.
constexpr int kMostDrained = 16;

}  // namespace

void wake(Doorbell& doorbell, uint32_t how) {
    if (std::atomic<uint32_t>* place = doorbell.place()) mark_awake(*place);
    doorbell.rings.fetch_add(1, std::memory_order_release);
    const uint32_t whom = how & kInWait ? kProgramThreads : FUTEX_BITSET_MATCH_ANY;
    if (how & kOnFutex) syscall(SYS_futex, &doorbell.rings, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, whom);
    if (how & kOnSocket) write_to_wake_socket(doorbell);
}

int open_wake_socket(Doorbell& doorbell) {
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    // Binding without a name makes the kernel choose a free one.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t size = sizeof address;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    const size_t length = size - offsetof(sockaddr_un, sun_path) - 1;
    if (length > sizeof doorbell.wake_name) {
        close(fd);
        errno = ENAMETOOLONG;
        return -1;
    }
    std::memcpy(doorbell.wake_name, address.sun_path + 1, length);
    doorbell.wake_name_length = static_cast<uint32_t>(length);
    return fd;
}

bool drain_wake_socket(int fd) {
    char word[8];
    bool any = false;
    for (int i = 0; i < kMostDrained && recv(fd, word, sizeof word, MSG_DONTWAIT) > 0; ++i) any = true;
    return any;
}

}  // namespace starling::job
