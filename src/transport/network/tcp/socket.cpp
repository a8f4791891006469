#include "transport/network/tcp/socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/linux_calls.h"
#include "base/state.h"

namespace starling::network {

namespace {

/// Limit of unsent data in the kernel, bytes. It is large enough to keep a fast network busy between two polls. It is small enough that a
/// packet does not wait long behind that data, and that each socket takes only as much as its network really carries.
constexpr int kUnsent = 512 * 1024;
/// Number of unanswered attempts after which silence counts as failure.
constexpr unsigned kUnanswered = 3;

sockaddr_in make_address(uint32_t address, uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = address;
    result.sin_port = htons(port);
    return result;
}

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

int close_with_errno(int fd) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

}  // namespace

int open_listener(uint32_t local, uint16_t& port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    sockaddr_in address = make_address(local, port);
    socklen_t length = sizeof address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        return close_with_errno(fd);
    port = ntohs(address.sin_port);
    return fd;
}

int begin_connect(uint32_t local, uint32_t remote, uint16_t port, const TcpOptions& options) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    tune(fd, options);
    if (local != 0) {
        // Let connect() choose the port: it can use ports that bind() has to refuse.
        set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        const sockaddr_in from = make_address(local, 0);
        if (bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) return close_with_errno(fd);
    }
    const sockaddr_in to = make_address(remote, port);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
        return close_with_errno(fd);
    return fd;
}

int connect_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void tune(int fd, const TcpOptions& options) {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);  // a lost small message is repeated every 0.2 s, not ever more rarely
    set(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, 1000);           // after a lost SYN it would be repeated every 3 s
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsent);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
    if (options.send_buffer > 0) set(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer);
    if (options.receive_buffer > 0) set(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
}

void abandon(int fd) {
    const linger at_once{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Health examine(int fd, uint64_t silence_limit_ns) {
    tcp_info info{};
    socklen_t length = sizeof info;
    Health health;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return health;
    health.outstanding = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    // A host answers probes even if its process does not read. So unanswered probes mean that the host, not the process, is silent.
    const bool asked = info.tcpi_retransmits >= kUnanswered || info.tcpi_probes > kUnanswered;
    health.silent = health.outstanding && asked && uint64_t{info.tcpi_last_ack_recv} * 1'000'000 > silence_limit_ns;
    health.unacknowledged = info.tcpi_unacked > 0;
    health.unsent = info.tcpi_notsent_bytes > 0;
    health.timed_out = info.tcpi_retransmits > 0 && info.tcpi_unacked > 0;
    health.repairs = info.tcpi_ca_state >= TCP_CA_Recovery;
    health.acked = info.tcpi_bytes_acked;
    health.sent = info.tcpi_data_segs_out;
    health.repeated = info.tcpi_total_retrans;
    health.round_trip = uint64_t{info.tcpi_rtt} * 1000;
    health.least_round_trip = uint64_t{info.tcpi_min_rtt} * 1000;
    return health;
}

const char* print_address(uint32_t address, uint16_t port) {
    STARLING_STATE static char text[48];
    char number[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address, number, sizeof number);
    std::snprintf(text, sizeof text, "%s port %u", number, port);
    return text;
}

}  // namespace starling::network
