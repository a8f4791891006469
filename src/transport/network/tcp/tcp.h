// TCP connections of transport `ip`, over one or several sockets and rails to one process. A connection is opened by one exchange on the
// base path (offer() on one side, dial() on the other). It then carries
//  - frames of the session, opaque here and in order, on the first of its sockets. The session stores their packets until the peer has
//    acknowledged them. So a socket may break at any time, and the session repeats them on another one or as datagrams.
//  - fragments of streams, on all of its sockets. Each socket takes the next fragment when it has room. The data is
//    written from the sender's memory and read into the receiver's without another copy.
// The listener is opened with the first offer, so a process without connections has no TCP socket at all. Not thread-safe: all calls under
// the library's lock.
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

inline constexpr uint32_t kTcpFrame = 66560;      ///< bytes of the longest session frame: 64 KB and the headers
inline constexpr uint32_t kOfferedAddresses = 5;  ///< rails that one offer can name

/// Contents of the control packet by which a process on the base path invites a peer to connect. Unused fields are zero.
struct ConnectionOffer {
    uint64_t token = 0;  ///< random secret of this offer, which the caller's TcpHello must contain
    uint16_t port = 0;
    uint8_t version = 0;
    uint8_t addresses = 0;
    uint32_t address[kOfferedAddresses] = {};  ///< IPv4, in network byte order, the best first
};
static_assert(sizeof(ConnectionOffer) == 32);

/// One usable interface. Both fields are in network byte order.
struct TcpRail {
    uint32_t address = 0, netmask = 0;
    bool operator==(const TcpRail&) const = default;
};

struct TcpOptions {
    ProcessId self;
    uint64_t key = 0;                ///< key of this job on this host, which the TcpHello of a caller must contain
    const Cipher* cipher = nullptr;  ///< cipher that seals all connections and outlives them; null: no encryption
    uint32_t sockets_per_rail = 1;
    bool on_rails_alone = false;                ///< whether to listen on the rails' addresses only; else on all
    uint64_t connect_limit_ns = 3'000'000'000;  ///< time limit for a socket to connect and be welcomed
    uint64_t silence_limit_ns = 2'000'000'000;  ///< time after which a socket with unanswered data is closed
    uint64_t pause_ns = 4'000'000'000;          ///< first pause of a stalled connection; doubled each time, up to 16 times this
    /// How long data may stay unacknowledged, besides two round trips. While the receiving process answers, its kernel delays
    /// acknowledgements of up to two segments by 40 ms. It delays any number of them while a process that was reading is not scheduled.
    uint64_t patience_ns = 50'000'000;
    uint64_t fragment_bytes = 512 * 1024;     ///< longest fragment; a frame waits for at most one fragment
    int send_buffer = 0, receive_buffer = 0;  ///< buffer sizes of a socket in bytes; 0: the kernel decides
    Health (*examine)(int fd, uint64_t silence_limit_ns) = nullptr;  ///< replaces the query to the kernel in tests
};

using TcpUpcalls = ConnectionUpcalls;

/// Totals of all connections so far.
struct TcpCounters {
    uint64_t connections = 0, sockets = 0;  ///< number of connections and sockets that are open now
    uint64_t opened = 0, failed = 0, broken = 0;
    uint64_t paused = 0;    ///< times that a connection was found to stall or to lose packets
    uint64_t rejected = 0;  ///< callers rejected: no TcpHello, a wrong one, or garbage
    uint64_t frames_sent = 0, frames_received = 0, bytes_sent = 0, bytes_received = 0;  ///< session frames; bytes of all frames
    uint64_t fragments_sent = 0, fragment_bytes_sent = 0, fragments_received = 0, fragment_bytes_received = 0;
    uint64_t writes = 0, reads = 0;  ///< numbers of system calls that transferred data
};

/// A TCP connection, created and owned by Tcp.
class TcpConnection final : public Connection {
  public:
    explicit TcpConnection(Connections& by);
    ~TcpConnection() override;

    SendResult send(const iovec* parts, int count) override;
    bool stalls(uint64_t now) override;
    uint32_t frame_limit() const override { return kTcpFrame; }

  private:
    friend struct TcpEngine;
    std::unique_ptr<ConnectionParts> parts_;
};

/// All TCP connections of one process. Its functions accept only connections that add() has returned.
class Tcp final : public Connections {
  public:
    /// Creates an epoll descriptor and nothing else. Returns MPI_ERR_OTHER with failure_text() on failure.
    static int create(const TcpOptions& options, const TcpUpcalls& upcalls, std::unique_ptr<Tcp>& out);
    ~Tcp() override;
    const char* name() const override { return "TCP"; }

    /// Returns a descriptor that is readable when poll() has something to do. It may be added to another epoll set.
    int wait_fd() const;
    /// Sets the usable interfaces; call it again whenever they change. Sockets on an interface that has disappeared are closed at once, and
    /// open connections add sockets on a new one.
    void set_rails(std::span<const TcpRail> rails);

    /// Closes the connection's sockets to an address of the peer at once, without waiting for the silence limit.
    void lose_remote(Connection& connection, uint32_t address) override;

    /// Creates a connection in state idle. `peer_key` is the key that the peer expects in a TcpHello. `pair` is the secret that only this
    /// process and the peer share, if connections are sealed.
    Connection& add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair = {});
    /// Opens the listener if there is none, and fills in the offer for the peer. Returns MPI_ERR_OTHER with failure_text() if no descriptor
    /// is available. If the peer does not connect within twice the connect limit, failed() is called.
    int offer(Connection& connection, ConnectionOffer& out);
    /// Connects to a peer that has sent an offer, on every rail that reaches one of its addresses. Reports the result by opened() or
    /// failed(). Call it on both sides if both have sent an offer: the lower process then waits, and the higher one connects.
    int dial(Connection& connection, const ConnectionOffer& offer);
    /// Implement Connections::describe and use. Only `open` carries an offer: the process that accepts connects, so its `accept` needs
    /// none.
    int describe(Connection& connection, packet::PacketKind kind, std::byte* offer, uint32_t& bytes) override;
    int use(Connection& connection, packet::PacketKind kind, const std::byte* offer) override;
    void finish(Connection& connection) override;
    void drop(Connection& connection) override;

    /// Sends the stream over all sockets of the connection.
    void add_stream(Connection& connection, OutStream& stream) override;
    /// Ends the stream, and breaks a socket that is in the middle of one of its fragments. If the receiver has `confirmed` that it has all
    /// data, the socket stays, since the receiver ignores the rest of the fragment.
    void remove_stream(OutStream& stream, bool confirmed = false) override;

    /// Receives, delivers, sends what waits, and checks time limits. `now` is in ns of the monotonic clock. Returns whether anything
    /// happened.
    bool poll(uint64_t now);
    /// Returns when poll() must be called even if wait_fd() is not readable; UINT64_MAX: never.
    uint64_t next_deadline() const;

    StreamTotals fragments_sent() const override { return {counters().fragments_sent, counters().fragment_bytes_sent}; }
    const TcpCounters& counters() const;

  private:
    explicit Tcp(std::unique_ptr<TcpEngine> engine);
    std::unique_ptr<TcpEngine> engine_;
};

}  // namespace starling::network
