// Connections of the network transport: each leads to one process, and carries frames of its session and fragments of streams. There are
// two kinds, TCP (tcp.h) and RC (transport/network/rdma/rc_connection.h), and the network uses both through this interface alone.
//
// One exchange on the base path opens a connection (`describe` here, `use` at the peer). It then carries
//  - frames of the session, in order and opaque to the connection. The session keeps their contents until its peer has acknowledged them,
//    so a connection may die at any time;
//  - fragments of streams, which the receiver puts where they belong.
//
// Not thread-safe: all calls under the library's lock.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "job/job_segment.h"
#include "transport/network/session/carrier.h"
#include "transport/packet.h"
#include "transport/stream.h"

namespace starling::network {

using transport::kReliablePath;
using transport::OutStream;
using transport::PathId;
using transport::StreamFragment;
using transport::StreamRange;

using StreamList = List<OutStream, &OutStream::hook>;

class Session;
class Connections;

/// The identity of a process.
struct ProcessId {
    job::JobId job = 0;
    uint32_t rank = 0;
    auto operator<=>(const ProcessId&) const = default;
};

/// A connection to one peer, in any state. While it is open it takes frames as a carrier of the session.
class Connection : public Carrier {
  public:
    enum class CarrierState : uint8_t {
        idle,      ///< neither offered nor requested
        waiting,   ///< we have sent an offer, by which the peer is expected to connect
        dialling,  ///< this side is connecting, by an offer of the peer
        open,
        dropped,
    };
    explicit Connection(Connections& by) : by(by) {}

    Connections& by;
    ProcessId peer;
    void* user = nullptr;        ///< value for the code that opened the connection
    Session* session = nullptr;  ///< the session whose frames the connection carries
    CarrierState state() const { return state_; }
    /// Returns whether we have announced that we will send nothing more.
    bool finished() const { return finished_; }
    /// Returns whether the connection has stalled and not recovered since.
    bool paused() const { return paused_; }
    /// Returns whether the connection takes streams.
    bool serves() const { return state_ == CarrierState::open && !finished_ && !paused_; }

  protected:
    friend struct TcpEngine;
    friend class Rc;
    CarrierState state_ = CarrierState::idle;
    bool finished_ = false;
    bool paused_ = false;
};

/// The events of a connection. Those from `opened` to `broken` are for the code that opened it, `frame` to `rerouted` for its session,
/// `target` to `stranded` for the message room. An upcall may call every function of Connections except poll().
struct ConnectionUpcalls {
    /// The connection can carry frames and streams from now on.
    void (*opened)(Connection&) = nullptr;
    /// The connection did not open: it was refused or timed out, or no descriptor was left. failure_text() names address, port and reason.
    void (*failed)(Connection&) = nullptr;
    /// The peer has finished: everything it sent has been delivered, and nothing more follows. Answer with finish(), then drop().
    void (*ended)(Connection&) = nullptr;
    /// The connection died: its last socket, or its queue, has failed. failure_text() names the cause. Its streams have been stranded;
    /// drop() the connection.
    void (*broken)(Connection&) = nullptr;

    /// A whole frame of the session has arrived; `frame` is aligned to 8 bytes. Return false if it is malformed, which closes the socket or
    /// queue.
    bool (*frame)(Connection&, const std::byte* frame, size_t bytes) = nullptr;
    /// The carrier takes frames again, after send() had returned busy.
    void (*room)(Connection&) = nullptr;
    /// The socket that carried the frames died but others live: the session must send all unacknowledged frames again.
    void (*rerouted)(Connection&) = nullptr;

    /// Returns where bytes [done, done + bytes) of this fragment belong: memory for all of them, or nullptr to pass them to unpack(). It is
    /// called before each read. If the receive has completed meanwhile, it returns nullptr, and unpack() ignores the bytes.
    std::byte* (*target)(Connection&, const StreamFragment& fragment, uint64_t done, uint64_t bytes) = nullptr;
    void (*unpack)(Connection&, const StreamFragment& fragment, uint64_t done, const std::byte* data, uint64_t bytes) = nullptr;
    /// All bytes of the fragment are in place. The fragment may be a duplicate, so its bytes must be counted with Coverage (stream.h).
    void (*fragment)(Connection&, const StreamFragment& fragment) = nullptr;
    /// Data that was sent seems not to arrive: the session must ask the peer for a sign of life another way (Session::request_ack).
    void (*request_ack)(Connection&) = nullptr;
    /// The connection stalls, or loses much: its streams are being stranded, and it takes neither frames nor streams until trusted().
    void (*paused)(Connection&) = nullptr;
    /// The pause has ended: all data that the connection had taken has arrived, and some time has passed.
    void (*trusted)(Connection&) = nullptr;

    /// The connection will carry no more of the stream. The callee sends the stream's remaining bytes (has_work()) on the base path. Called
    /// again if a socket dies, because the bytes that it carried must then be sent once more.
    void (*stranded)(OutStream&) = nullptr;
};

/// Reports all streams of a connection, `working` and `waiting`, as stranded, because it carries no more of them. If the connection is
/// `lost`, the streams leave its lists, and its unconfirmed bytes must be sent again. Otherwise all of them are in `waiting` afterwards.
void strand(StreamList& working, StreamList& waiting, bool lost, const ConnectionUpcalls& upcalls);

/// Totals of the stream data sent so far.
struct StreamTotals {
    uint64_t fragments = 0, bytes = 0;
};

/// All connections of one kind.
class Connections {
  public:
    virtual ~Connections() = default;

    /// Returns the name of this kind of connection as shown to users.
    virtual const char* name() const = 0;
    /// Writes the payload of a packet `open` or `accept`, at most transport::Connector::kOffer bytes. Returns MPI_ERR_OTHER with
    /// failure_text() if it cannot be written.
    virtual int describe(Connection& connection, packet::PacketKind kind, std::byte* offer, uint32_t& bytes) = 0;
    /// Starts to connect by the payload of the peer's packet; opened() or failed() follows. Returns MPI_ERR_OTHER with failure_text() if
    /// neither will.
    virtual int use(Connection& connection, packet::PacketKind kind, const std::byte* offer) = 0;
    /// Announces that we will send nothing more: the peer gets ended() after everything sent before. Streams are stranded, but stay with
    /// the connection until they are removed or it is dropped.
    virtual void finish(Connection& connection) = 0;
    /// Closes the connection, whatever its state. No upcall follows, except stranded() for its streams during this call. Data that the
    /// connection or send() had taken may not have arrived.
    virtual void drop(Connection& connection) = 0;

    /// Sends a stream over an open connection. Keep the stream and its memory until the receiver has confirmed all data or the send is
    /// abandoned, and then call remove_stream().
    virtual void add_stream(Connection& connection, OutStream& stream) = 0;
    /// Ends the stream: its memory is not read afterwards. `confirmed`: the receiver has confirmed all data.
    virtual void remove_stream(OutStream& stream, bool confirmed = false) = 0;
    /// Closes the sockets to an address of the peer (network byte order), because the peer has announced that this interface is down.
    virtual void lose_remote(Connection& connection, uint32_t address) { (void)connection, (void)address; }
    /// Returns the stream data sent, which the session's packet counters do not include.
    virtual StreamTotals fragments_sent() const = 0;
};

}  // namespace starling::network
