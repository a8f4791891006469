// Connections of transport ip: TCP to one process, over one or several sockets and rails. A connection is opened by one
// exchange on the base path (`offer` here, `dial` there) and then carries
//   - frames of the session, opaque here, in order, on the first of its sockets; the session keeps what is in them until its
//     peer has acknowledged it, so that a socket may die at any time and it is repeated on another or as datagrams;
//   - pieces: data of streams, written from the sender's memory and read into the receiver's without another copy, on
//     all of its sockets, each of which takes the next piece when it has room.
// The listener is opened with the first offer, so a process without connections has no TCP socket at all.
// Not thread-safe: all calls under the library's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/network/crypto/cipher.h"
#include "transport/network/session/connection.h"

namespace starling::network {

struct ConnectionParts;
struct Health;
struct TcpEngine;

inline constexpr uint32_t kTcpFrame = 66560;      ///< bytes of the longest session frame: 64 KB and their headers
inline constexpr uint32_t kOfferedAddresses = 5;  ///< rails that one offer can name

/// What a process tells another on the base path so that it may connect. Fits a control packet; zeroed where unused.
struct ConnectionOffer {
    uint64_t token = 0;  ///< random; the caller shows it, nobody else knows it
    uint16_t port = 0;
    uint8_t version = 0;
    uint8_t addresses = 0;
    uint32_t address[kOfferedAddresses] = {};  ///< IPv4, in network byte order, the best first
};
static_assert(sizeof(ConnectionOffer) == 32);

/// One usable interface. In network byte order.
struct TcpRail {
    uint32_t address = 0, netmask = 0;
    bool operator==(const TcpRail&) const = default;
};

struct TcpOptions {
    ProcessId self;
    uint64_t key = 0;                ///< what whoever connects must show
    const Cipher* cipher = nullptr;  ///< lives longer; all connections are sealed with it. Null: none is
    uint32_t sockets_per_rail = 1;
    bool on_rails_alone = false;                ///< callers are heard on the rails' addresses; else on all
    uint64_t connect_limit_ns = 3'000'000'000;  ///< for a socket to be connected and welcomed
    uint64_t silence_limit_ns = 2'000'000'000;  ///< unanswered data: then the socket is given up
    uint64_t doubt_ns = 4'000'000'000;          ///< that one which stalled is not used; doubled each time, up to 16 times
    /// With what is under way and not acknowledged, besides two round trips. The kernel of its receiver holds acknowledgements
    /// of two segments or fewer back for 40 ms while its process answers; and of any number where that process lost its core
    /// while it read, until it has it again.
    uint64_t patience_ns = 50'000'000;
    uint64_t piece_bytes = 512 * 1024;                               ///< longest piece; frames wait for no more than one
    int send_buffer = 0, receive_buffer = 0;                         ///< of a socket, in bytes; 0: the kernel decides
    Health (*examine)(int fd, uint64_t silence_limit_ns) = nullptr;  ///< instead of asking the kernel; for tests
};

using TcpUpcalls = ConnectionUpcalls;

/// What connections did so far.
struct TcpCounters {
    uint64_t connections = 0, sockets = 0;  ///< open now
    uint64_t opened = 0, failed = 0, broken = 0;
    uint64_t doubted = 0;    ///< times that one was found to stall or to lose
    uint64_t strangers = 0;  ///< hung up on: no hello, a wrong one, or garbage
    uint64_t frames_sent = 0, frames_received = 0, bytes_sent = 0, bytes_received = 0;  ///< all bytes, pieces too
    uint64_t pieces_sent = 0, piece_bytes_sent = 0, pieces_received = 0, piece_bytes_received = 0;
    uint64_t writes = 0, reads = 0;  ///< system calls that moved something
};

/// Made and owned by Tcp.
class TcpConnection final : public Connection {
  public:
    explicit TcpConnection(Connections& by);
    ~TcpConnection() override;

    Sent send(const iovec* parts, int count) override;
    bool stalls(uint64_t now) override;
    uint32_t frame_limit() const override { return kTcpFrame; }

  private:
    friend struct TcpEngine;
    std::unique_ptr<ConnectionParts> parts_;
};

/// All TCP of one process. The connections that it is given are its own.
class Tcp final : public Connections {
  public:
    /// Makes an epoll descriptor and nothing else. MPI_ERR_OTHER with failure_text().
    static int create(const TcpOptions& options, const TcpUpcalls& upcalls, std::unique_ptr<Tcp>& out);
    ~Tcp() override;
    const char* name() const override { return "TCP"; }

    /// Readable when poll() has something to do. May be put into another epoll set.
    int wait_fd() const;
    /// The usable interfaces, again whenever they change: sockets on one that is gone are given up at once, and open
    /// connections take up a new one.
    void set_rails(std::span<const TcpRail> rails);

    /// Sockets to that address are given up at once, not when they have been silent for long.
    void lose_remote(Connection& connection, uint32_t address) override;

    /// A connection in state idle. `peer_key` is what the peer wants
    /// to be shown; `pair` what this process and the peer alone have, if connections are sealed.
    Connection& add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair = {});
    /// Opens the listener if it isn't yet, and fills what the peer has to be told. MPI_ERR_OTHER with failure_text() if
    /// there is no descriptor left. If nobody comes in twice the connect limit: failed().
    int offer(Connection& connection, ConnectionOffer& out);
    /// The peer has offered: connects, on every rail that reaches one of its addresses, and tells by opened() or failed().
    /// If both have offered, the lower process waits and the higher one connects; call this on both sides.
    int dial(Connection& connection, const ConnectionOffer& offer);
    /// Who accepts connects, and needs no offer.
    int describe(Connection& connection, packet::Kind kind, std::byte* offer, uint32_t& bytes) override;
    int use(Connection& connection, packet::Kind kind, const std::byte* offer) override;
    void finish(Connection& connection) override;
    void drop(Connection& connection) override;

    /// Over all sockets of the connection.
    void add_stream(Connection& connection, OutStream& stream) override;
    /// A socket that is in the middle of one of its pieces dies, unless the
    /// receiver has `confirmed` that it has all: then it does not look at what comes of it any more.
    void remove_stream(OutStream& stream, bool confirmed = false) override;

    /// Receives, delivers, sends what waits, and looks at time limits. `now` in ns, monotonic. Whether anything happened.
    bool poll(uint64_t now);
    /// When poll() must be called even if wait_fd() is not readable; UINT64_MAX: never.
    uint64_t next_deadline() const;

    StreamTotals pieces_sent() const override { return {counters().pieces_sent, counters().piece_bytes_sent}; }
    const TcpCounters& counters() const;

  private:
    explicit Tcp(std::unique_ptr<TcpEngine> engine);
    std::unique_ptr<TcpEngine> engine_;
};

}  // namespace starling::network
