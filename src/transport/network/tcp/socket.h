// System calls on TCP sockets: open, tune, and query the kernel about a socket's health.
#pragma once

#include <cstdint>

#include "transport/network/tcp/tcp.h"

namespace starling::network {

/// Opens a non-blocking listener. `local` is an address of this host in network byte order (0: all). `port` is in host byte order; the
/// kernel chooses one if it is 0. Returns the descriptor, or -1 with errno.
int open_listener(uint32_t local, uint16_t& port);

/// Starts to connect from `local` (0: the kernel's choice) to `remote`, both in network byte order. Returns the descriptor, or -1 with
/// errno. It becomes writable when the attempt has ended; connect_error() then returns the result.
int begin_connect(uint32_t local, uint32_t remote, uint16_t port, const TcpOptions& options);
int connect_error(int fd);

/// Sets the options of a connection's socket: no delay, buffer sizes, keepalive, little unsent data in the kernel.
void tune(int fd, const TcpOptions& options);

/// Makes close() discard the data that the kernel has not sent.
void abandon(int fd);

/// The kernel's state of sent data (TCP_INFO).
struct Health {
    bool outstanding = false;  ///< whether data or probes are unanswered
    /// Whether data was repeated several times, and the peer's host has not answered for the silence limit.
    bool silent = false;
    bool unacknowledged = false;                    ///< whether sent segments are not acknowledged
    bool unsent = false;                            ///< whether data waits for the send window
    bool timed_out = false;                         ///< whether the retransmission timeout has expired without an answer since
    bool repairs = false;                           ///< whether the kernel is recovering from a loss
    uint64_t acked = 0;                             ///< total number of bytes acknowledged
    uint64_t sent = 0, repeated = 0;                ///< total number of segments with data sent, and of those that were repeats
    uint64_t round_trip = 0, least_round_trip = 0;  ///< smoothed round-trip time, and its recent minimum, ns
};
Health examine(int fd, uint64_t silence_limit_ns);

/// Returns the text "10.1.0.2 port 4711", for example, in a static buffer.
const char* print_address(uint32_t address, uint16_t port);

}  // namespace starling::network
