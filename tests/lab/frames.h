// The protocol between the agent and a host, over TCP: frames of one kind byte, four bytes of length (big endian), and that many bytes of
// data. Both ends and the network belong to the lab, so there is neither key nor cipher.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace starling::lab {

constexpr int agent_port = 514;  // the port that rsh used

enum class Frame : char {
    command = 'c',  // agent → host: the command line for the shell
    input = 'i',    // agent → host: standard input; empty: it has ended
    output = 'o',   // host → agent: standard output
    error = 'e',    // host → agent: standard error
    end = 'x',      // host → agent: one byte, the exit code
};

constexpr size_t largest_frame = 1 << 20;

/// Sends each frame at once, and does not double the timeouts of lost ones: the lab's cables may lose a fifth of all packets, and the tests
/// are about the job's connections and not about the agent's.
inline void tune_agent_socket(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

inline bool write_all(int fd, const void* data, size_t bytes) {
    auto* next = static_cast<const char*>(data);
    while (bytes > 0) {
        ssize_t n = write(fd, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        next += n;
        bytes -= static_cast<size_t>(n);
    }
    return true;
}

inline bool read_all(int fd, void* data, size_t bytes) {
    auto* next = static_cast<char*>(data);
    while (bytes > 0) {
        ssize_t n = read(fd, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        next += n;
        bytes -= static_cast<size_t>(n);
    }
    return true;
}

inline bool send_frame(int fd, Frame kind, const void* data, size_t bytes) {
    char head[5] = {static_cast<char>(kind)};
    uint32_t length = htonl(static_cast<uint32_t>(bytes));
    std::memcpy(head + 1, &length, 4);
    return write_all(fd, head, 5) && write_all(fd, data, bytes);
}

// Receives one frame. Returns false if the connection is closed or the frame is malformed.
inline bool receive_frame(int fd, Frame& kind, std::string& data) {
    char head[5];
    if (!read_all(fd, head, 5)) return false;
    uint32_t length;
    std::memcpy(&length, head + 1, 4);
    length = ntohl(length);
    if (length > largest_frame) return false;
    kind = static_cast<Frame>(head[0]);
    data.resize(length);
    return read_all(fd, data.data(), length);
}

}  // namespace starling::lab
