// System calls on TCP sockets: opening, tuning, and what the kernel knows of a socket's health.
#pragma once

#include <cstdint>

#include "transport/network/tcp/tcp.h"

namespace starling::network {

/// A non-blocking listener on an address of this host (network byte order; 0: on all) and a port (host byte order), which is the kernel's choice
/// where it is 0. The descriptor, or -1 with errno.
int open_listener(uint32_t local, uint16_t& port);

/// Begins to connect from `local` (0: the kernel's choice) to `remote` (both network byte order). The descriptor, or
/// -1 with errno. It becomes writable when the attempt has ended; then connect_error().
int begin_connect(uint32_t local, uint32_t remote, uint16_t port, const TcpOptions& options);
int connect_error(int fd);

/// What each socket of a connection is given: no delay, buffers, little unsent data in the kernel.
void tune(int fd, const TcpOptions& options);

/// The kernel forgets what it has not sent, when the socket is closed.
void abandon(int fd);

/// What the kernel says of data under way.
struct Health {
    bool outstanding = false;         ///< data or probes wait for an answer
    bool silent = false;              ///< and the other host has not answered for the limit, though asked several times
    bool unacknowledged = false;      ///< segments are under way
    bool unsent = false;              ///< data waits for the window
    bool timed_out = false;           ///< the kernel's own timer has run out, and nothing was answered since
    bool repairs = false;             ///< segments were lost, and what was sent instead of them is not acknowledged
    uint64_t acked = 0;               ///< bytes, all in all
    uint64_t sent = 0, repeated = 0;  ///< segments with data, all in all, and those of them that were repeated
    uint64_t round_trip = 0, least_round_trip = 0;  ///< ns: smoothed, and the least of late
};
Health examine(int fd, uint64_t silence_limit_ns);

/// "10.1.0.2 port 4711", in a static buffer.
const char* print_address(uint32_t address, uint16_t port);

}  // namespace starling::network
