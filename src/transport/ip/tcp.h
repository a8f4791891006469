// Connections of transport ip: TCP to one process, over one or several sockets and rails. A connection is opened by one
// exchange on the base path (`offer` here, `dial` there) and then carries
//   - packets: those of the session, in order, on the first of its sockets; the session keeps them until its peer has
//     acknowledged them, so that a socket may die at any time and they are repeated on another or as datagrams;
//   - pieces: data of streams, written from the sender's memory and read into the receiver's without another copy, on
//     all of its sockets, each of which takes the next piece when it has room.
// The listener is opened with the first offer, so a process without connections has no TCP socket at all.
//
// On the wire every frame is the 32-byte header of transport/shm/packet.h and header.bytes bytes of payload. The flag
// kDirectFlag marks frames of this file's own; all else in a packet's header, `stamp` included, belongs to the session.
// Not thread-safe: all calls under the library's lock.
#pragma once

#include <sys/uio.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boot/job_segment.h"
#include "transport/ip/stream.h"
#include "transport/shm/packet.h"

namespace starling::ip {

struct Session;
class Connection;

inline constexpr uint8_t kDirectFlag = 0x80;      ///< in header.flags: a piece of a stream, or of the connection itself
inline constexpr uint32_t kTcpPayload = 65536;    ///< the longest payload of a packet
inline constexpr uint32_t kOfferedAddresses = 5;  ///< rails that one offer can name

/// Who somebody is.
struct ProcessId {
    boot::JobId job = 0;
    uint32_t rank = 0;
    auto operator<=>(const ProcessId&) const = default;
};

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
    uint64_t key[2] = {};                          ///< of the own job: whoever connects must know it
    uint32_t sockets_per_rail = 1;
    uint64_t connect_limit_ns = 3'000'000'000;     ///< for a socket to be connected and welcomed
    uint64_t silence_limit_ns = 2'000'000'000;     ///< unanswered data: then the socket is given up
    uint64_t piece_bytes = 512 * 1024;             ///< longest piece; packets wait for no more than one
    int send_buffer = 0, receive_buffer = 0;       ///< of a socket, in bytes; 0: the kernel decides
};

/// What happens, told to who opened the connection (opened … broken), to its session (packet … rerouted) and to the
/// message room (target … stranded). Within any of them every call of this file but poll() is allowed.
struct TcpUpcalls {
    /// It can carry packets and streams from now on.
    void (*opened)(Connection&) = nullptr;
    /// It did not open: refused, timed out, no descriptor. failure_text() names address, port and reason.
    void (*failed)(Connection&) = nullptr;
    /// The peer has finished: everything it sent has been delivered, and no more will come. Answer with finish(),
    /// then drop().
    void (*ended)(Connection&) = nullptr;
    /// The last of its sockets died. failure_text() says how. Streams have been stranded; drop() it.
    void (*broken)(Connection&) = nullptr;

    void (*packet)(Connection&, const shm::Header&, const std::byte* payload) = nullptr;
    /// send() takes packets again.
    void (*room)(Connection&) = nullptr;
    /// The socket that carried the packets died but others live: send all that is not acknowledged again.
    void (*rerouted)(Connection&) = nullptr;

    /// Where bytes [done, done + bytes) of this piece go: memory for all of them, or nullptr to get them by unpack(). Asked
    /// before each read, so a receive that has completed meanwhile says nullptr and ignores unpack().
    std::byte* (*target)(Connection&, const shm::Header& piece, uint64_t done, uint64_t bytes) = nullptr;
    void (*unpack)(Connection&, const shm::Header& piece, uint64_t done, const std::byte* data, uint64_t bytes) = nullptr;
    /// All bytes of the piece are where they belong. It may be one that has come before: count with Coverage.
    void (*piece)(Connection&, const shm::Header& piece) = nullptr;
    /// The connection can't carry the rest of the stream (stream.connection is null now): send it on the base path.
    void (*stranded)(OutStream&) = nullptr;
};

/// What connections did so far.
struct TcpCounters {
    uint64_t connections = 0, sockets = 0;  ///< open now
    uint64_t opened = 0, failed = 0, broken = 0;
    uint64_t strangers = 0;  ///< hung up on: no hello, a wrong one, or garbage
    uint64_t packets_sent = 0, packets_received = 0, bytes_sent = 0, bytes_received = 0;
    uint64_t pieces_sent = 0, piece_bytes_sent = 0, pieces_received = 0, piece_bytes_received = 0;
    uint64_t writes = 0, reads = 0;  ///< system calls that moved something
};

/// A connection to one peer, in whatever state. Made and owned by Tcp.
class Connection {
  public:
    enum class State : uint8_t {
        idle,      ///< neither offered nor dialled
        waiting,   ///< for the peer to come, by our offer
        dialling,  ///< the peer, by its offer
        open,
        dropped,
    };
    ProcessId peer;
    void* user = nullptr;        ///< of who opened it
    Session* session = nullptr;  ///< whose packets it carries
    State state() const { return state_; }
    /// Whether send() would take a packet now.
    bool has_room() const;
    /// We have said that we will send nothing more.
    bool finished() const { return finished_; }

  private:
    friend class Tcp;
    friend class TcpSocket;
    struct Parts;
    Connection();
    ~Connection();
    State state_ = State::idle;
    bool finished_ = false;
    std::unique_ptr<Parts> parts_;
};

/// All TCP of one process.
class Tcp {
  public:
    /// Makes an epoll descriptor and nothing else. MPI_ERR_OTHER with failure_text().
    static int create(const TcpOptions& options, const TcpUpcalls& upcalls, std::unique_ptr<Tcp>& out);
    ~Tcp();

    /// Readable when poll() has something to do. May be put into another epoll set.
    int wait_fd() const;
    /// The usable interfaces, again whenever they change: sockets on one that is gone are given up at once, and open
    /// connections take up a new one.
    void set_rails(std::span<const TcpRail> rails);

    /// A connection in state idle. `peer_key` is that of the peer's job.
    Connection& add(const ProcessId& peer, const uint64_t peer_key[2], void* user, Session* session);
    /// Opens the listener if it isn't yet, and fills what the peer has to be told. MPI_ERR_OTHER with failure_text() if
    /// there is no descriptor left. If nobody comes in twice the connect limit: failed().
    int offer(Connection& connection, ConnectionOffer& out);
    /// The peer has offered: connects, on every rail that reaches one of its addresses, and tells by opened() or failed().
    /// If both have offered, the lower process waits and the higher one connects; call this on both sides.
    int dial(Connection& connection, const ConnectionOffer& offer);
    /// We will send nothing more: the peer hears ended() after all we sent. Streams are stranded.
    void finish(Connection& connection);
    /// Forgets the connection, whatever its state, and closes its sockets: no upcall comes for it any more, but stranded()
    /// for its streams during this call. What was given to send() may not arrive, unless both sides had finished.
    void drop(Connection& connection);

    /// Writes packets, each a header with its payload, as one: `frames` are header.bytes + 32 long. Gives how many were
    /// taken (the rest when room() is called); their memory is not needed any more then.
    size_t send(Connection& connection, const iovec* frames, size_t count);

    /// Sends a stream over all sockets of an open connection. Keep it, and its memory, until the receiver has confirmed;
    /// then, or to give it up, remove_stream().
    void add_stream(Connection& connection, OutStream& stream);
    /// The memory of the stream is not read after this. A socket that is in the middle of one of its pieces dies.
    void remove_stream(OutStream& stream);

    /// Receives, delivers, sends what waits, and looks at time limits. `now` in ns, monotonic. Whether anything happened.
    bool poll(uint64_t now);
    /// When poll() must be called even if wait_fd() is not readable; UINT64_MAX: never.
    uint64_t next_deadline() const;

    const TcpCounters& counters() const;

  private:
    struct Parts;
    explicit Tcp(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace starling::ip
