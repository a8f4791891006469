// What the network has beside datagrams: connections to one process each, which carry frames of its session and pieces of streams. There
// are two kinds, TCP (tcp.h) and RC (transport/network/rdma/rc_connection.h); all that the network asks of either is here. A connection is opened by one exchange on the
// base path (`describe` here, `use` there) and then carries
//   - frames of the session, opaque here, in order; the session keeps what is in them until its peer has acknowledged it, so that a
//     connection may die at any time;
//   - pieces: data of streams, which the receiver puts where it belongs.
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

/// Who somebody is.
struct ProcessId {
    job::JobId job = 0;
    uint32_t rank = 0;
    auto operator<=>(const ProcessId&) const = default;
};

/// A connection to one peer, in whatever state. As a session's carrier it takes frames while it is open.
class Connection : public Carrier {
  public:
    enum class State : uint8_t {
        idle,      ///< neither offered nor asked for
        waiting,   ///< for the peer, by our offer
        dialling,  ///< the peer, by its offer
        open,
        dropped,
    };
    explicit Connection(Connections& by) : by(by) {}

    Connections& by;
    ProcessId peer;
    void* user = nullptr;        ///< of who opened it
    Session* session = nullptr;  ///< whose frames it carries
    State state() const { return state_; }
    /// We have said that we will send nothing more.
    bool finished() const { return finished_; }
    /// It stalled, and has not proved itself since.
    bool doubted() const { return doubted_; }
    /// It takes streams.
    bool serves() const { return state_ == State::open && !finished_ && !doubted_; }

  protected:
    friend struct TcpEngine;
    friend class Rc;
    State state_ = State::idle;
    bool finished_ = false;
    bool doubted_ = false;
};

/// What happens, told to who opened the connection (opened … broken), to its session (frame … rerouted) and to the
/// message room (target … stranded). Within any of them every call of Connections but poll() is allowed.
struct ConnectionUpcalls {
    /// It can carry frames and streams from now on.
    void (*opened)(Connection&) = nullptr;
    /// It did not open: refused, timed out, no descriptor. failure_text() names address, port and reason.
    void (*failed)(Connection&) = nullptr;
    /// The peer has finished: everything it sent has been delivered, and no more will come. Answer with finish(),
    /// then drop().
    void (*ended)(Connection&) = nullptr;
    /// It died: the last of its sockets, or its queue. failure_text() says how. Streams have been stranded; drop() it.
    void (*broken)(Connection&) = nullptr;

    /// A whole frame of the session; `frame` is aligned to 8. False: it is malformed, and what brought it is given up.
    bool (*frame)(Connection&, const std::byte* frame, size_t bytes) = nullptr;
    /// send() had said busy and takes frames again.
    void (*room)(Connection&) = nullptr;
    /// The socket that carried the frames died but others live: all that is not acknowledged is to be sent again.
    void (*rerouted)(Connection&) = nullptr;

    /// Where bytes [done, done + bytes) of this piece go: memory for all of them, or nullptr to get them by unpack(). Asked
    /// before each read, so a receive that has completed meanwhile says nullptr and ignores unpack().
    std::byte* (*target)(Connection&, const StreamFragment& piece, uint64_t done, uint64_t bytes) = nullptr;
    void (*unpack)(Connection&, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) = nullptr;
    /// All bytes of the piece are where they belong. It may be one that has come before: count with Coverage.
    void (*piece)(Connection&, const StreamFragment& piece) = nullptr;
    /// What was sent seems not to arrive: have the session ask the peer for a sign of life another way (Session::ask).
    void (*ask)(Connection&) = nullptr;
    /// It stalls, or loses much: its streams are being stranded, and it takes neither frames nor streams until trusted().
    void (*doubted)(Connection&) = nullptr;
    /// All that was given to it has arrived, and some time has passed.
    void (*trusted)(Connection&) = nullptr;

    /// The connection will carry nothing more of the stream: send what it has left (has_work()) on the base path. Comes
    /// again if a socket dies and what it carried has to be sent once more.
    void (*stranded)(OutStream&) = nullptr;
};

/// A connection carries no more of its streams, `working` and those that `waiting` has, all given and not confirmed: tells their owners. One that
/// is lost for good takes them out of its lists, and what it had of them is to be sent again.
void strand(StreamList& working, StreamList& waiting, bool lost, const ConnectionUpcalls& upcalls);

/// What was sent so far.
struct StreamTotals {
    uint64_t pieces = 0, bytes = 0;
};

/// All connections of one kind.
class Connections {
  public:
    virtual ~Connections() = default;

    /// For people.
    virtual const char* name() const = 0;
    /// What a packet `open` or `accept` tells the other side, at most transport::Connector::kOffer bytes. MPI_ERR_OTHER with failure_text().
    virtual int describe(Connection& connection, packet::Kind kind, std::byte* offer, uint32_t& bytes) = 0;
    /// The peer has told that: opened() or failed() follows. MPI_ERR_OTHER with failure_text(), and no such word.
    virtual int use(Connection& connection, packet::Kind kind, const std::byte* offer) = 0;
    /// We will send nothing more: the peer hears ended() after all we sent. Streams are stranded, but stay with the
    /// connection until they are removed or it is dropped.
    virtual void finish(Connection& connection) = 0;
    /// Forgets the connection, whatever its state: no upcall comes for it any more, but stranded()
    /// for its streams during this call, since what it took of them may not have arrived; nor may what send() took.
    virtual void drop(Connection& connection) = 0;

    /// Sends a stream over an open connection. Keep it, and its memory, until the receiver has confirmed;
    /// then, or to give it up, remove_stream().
    virtual void add_stream(Connection& connection, OutStream& stream) = 0;
    /// The memory of the stream is not read after this. `confirmed`: the receiver has told that it has all of it.
    virtual void remove_stream(OutStream& stream, bool confirmed = false) = 0;
    /// The peer says that its interface with this address (network byte order) is gone.
    virtual void lose_remote(Connection& connection, uint32_t address) { (void)connection, (void)address; }
    /// Pieces do not pass the session, where packets are counted.
    virtual StreamTotals pieces_sent() const = 0;
};

}  // namespace starling::network
