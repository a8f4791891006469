// Connections by reliable queue pairs (RC) of an InfiniBand or RoCE device, one queue for each process. The device acknowledges and
// retransmits by itself, so no timeouts are needed here: a queue works, or it is in the error state for good.
//
// Opening: the requester creates a queue and sends its address in `open`. The responder creates and connects its own queue and answers with
// its address in `accept`. The requester then connects, and sends `hello` as the first frame on the queue. A side that receives a hello
// replies with one, and may send from then on. So nothing is sent to a queue that is not connected yet, which would break the sender's
// queue. And a queue that delivers nothing is detected before data is sent on it. If both sides request at once, each connects its queue to
// the one in the other's `open` and sends `accept`. It sends hello once it has received the other's accept.
//
// A device does not notify the peer when a queue is closed or in error; a packet `wire_lost` on the base path does so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/counter_start.h"
#include "base/list.h"
#include "transport/network/rdma/memory_windows.h"
#include "transport/network/rdma/rdma_ring.h"
#include "transport/network/session/connection.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"
#include "transport/verbs/device.h"

namespace starling::network {

/// Payload of a packet `open` or `accept`. It is as long as the TCP offer, and has the version at the same offset.
struct RcOffer {
    uint8_t gid_front[8] = {};
    uint16_t lid = 0;
    uint8_t version = 0;
    uint8_t mtu_log = 0;
    uint8_t gid_back[8] = {};
    uint32_t queue : 24 = 0;
    uint32_t place : 8 = 0;  ///< index of the port at the sender
    uint32_t first : 24 = 0;
    uint32_t reads : 8 = 0;
    uint32_t answers = 0;  ///< queue number of the requester; set in an accept
};
static_assert(sizeof(RcOffer) == 32);
inline constexpr uint8_t kRcVersion = 0x83;  ///< differs from all TCP versions; 0x82 had ring trailers without a check

/// Payload of a packet `wire_lost`: a queue of the sender, and the receiver's queue that was connected to it.
struct QueuePair {
    uint32_t of_sender = 0, of_receiver = 0;
};

/// Header of all frames except the session's frames, which have DatagramHeader::kMagic in the place of kMagic.
struct RcFrame {
    static constexpr uint16_t kMagic = 0x6352;
    enum class RcFrameKind : uint8_t {
        hello = 1,  ///< first frame on a queue, by which the peer learns that the queue works
        fragment,   ///< fragment of a stream: an RcPiece, then the bytes
        finish,     ///< last frame on a queue
        written,    ///< an RDMA target was written; `bytes` is the target's word
        ring,  ///< RcRingOffer: the sender's ring, into which the peer may write frames. A hello may also contain an RcRingOffer
        consumed,   ///< `bytes`: slots that the sender has taken from its ring; sent if no ring trailer reports the number
        ring_back,  ///< the sender's request to get its ring back: the peer must stop writing into it
        ring_left,  ///< reply to ring_back: the sender of the reply writes nothing more into the ring
    };
    uint16_t magic = kMagic;
    RcFrameKind kind = RcFrameKind::hello;
    uint8_t version = kRcVersion;
    uint32_t bytes = 0;  ///< length of a fragment; or the word of the frame's kind
};
struct RcPiece {
    RcFrame frame;
    uint32_t serial = 0, generation = 0;
    uint64_t offset = 0;
};
static_assert(sizeof(RcFrame) == 8 && sizeof(RcPiece) == 24);

class Rc;
class RcConnection;

/// A posted RDMA target: memory that the peer writes once, over one connection.
struct RcArrival {
    transport::RdmaTarget* target = nullptr;
    /// Connection of the writer; null: it is closed, and poll() reports the target as lost.
    RcConnection* connection = nullptr;
    RegisteredMemory* loan = nullptr;
    uint32_t word = 0;
    ListHook hook;
};

/// An RDMA read or write of the peer's memory, issued in parts.
struct RcOperation {
    enum class RcOperationKind : uint8_t { read, write };
    RcOperationKind kind = RcOperationKind::read;
    RcConnection* connection = nullptr;           ///< connection that carries out the operation; null: this entry is free
    transport::Completion* completion = nullptr;  ///< completion to report; null: none
    std::byte* memory = nullptr;
    uint32_t local = 0;    ///< lkey of `memory`; 0: the data is sent inline
    uint32_t remote = 0;   ///< rkey of the peer's memory
    uint64_t address = 0;  ///< address of the peer's memory
    uint64_t bytes = 0, issued = 0;
    uint32_t under_way = 0;      ///< number of parts in flight
    bool tells = false;          ///< whether the operation writes to an RDMA target, so that the peer is notified with `word`
    bool frame_pending = false;  ///< whether the separate frame that notifies the peer is still to be sent
    uint32_t word = 0;
    uint32_t generation = kCounterStart;
    uint32_t index = 0;
    bool failed = false;
    verbs::Registration* registration = nullptr;
    std::byte* slot = nullptr;  ///< the port's buffer in which `memory` lies, or null
    void* copy_to = nullptr;    ///< destination of a read's data, copied there from the slot
    ListHook hook;              ///< membership in its connection's list of operations

    uint64_t token() const { return uint64_t{generation} << 32 | index; }
    bool all_issued() const { return issued == bytes && !frame_pending; }
};

class RcConnection final : public Connection {
  public:
    RcConnection(Rc& by, RcPort& port);
    ~RcConnection() override = default;

    SendResult send(const iovec* parts, int count) override;
    bool stalls(uint64_t) override { return state_ != CarrierState::open; }
    uint32_t frame_limit() const override { return frame_limit_; }
    bool by_device() const override { return true; }

    /// Return the port that the connection uses, and its queue (null before it is created and after it is closed).
    verbs::Port& port() const { return port_->port(); }
    /// Returns the port's registered memory.
    RcPort& memory() const { return *port_; }
    bool reaches(const transport::RemoteKey& region) const {
        const uint32_t queue = RcPort::queue_of(region);
        return serves() && RcPort::place_of(region) == their_place_ && (queue == RcPort::kAnyQueue || queue == theirs_.queue);
    }
    verbs::Queue* queue() const { return queue_; }

  private:
    friend class Rc;

    RcPort* port_;
    verbs::Queue* queue_ = nullptr;
    verbs::QueueAddress theirs_;
    uint8_t their_place_ = 0;
    const uint32_t frame_limit_;
    bool crossed_ = false;         ///< whether both sides have sent `open`
    bool greets_ = false;          ///< whether the hello is due or was sent
    bool hello_pending_ = false;   ///< whether the hello is still to be sent: the queue had no room
    bool finish_pending_ = false;  ///< whether the finish frame is still to be sent, after finish()
    bool finish_sent_ = false;
    bool finish_received_ = false;
    bool left_pending_ = false;                   ///< whether the frame ring_left is still to be sent
    uint32_t frames_out_ = kCounterStart;         ///< number of frames given to the queue
    uint32_t frames_in_ = kCounterStart;          ///< number of frames received from the queue
    uint64_t short_frames_ = 0;                   ///< number of recent frames short enough for a ring
    uint32_t foreseen_ = 0;                       ///< number of messages that a plan expects; 0: the peer is not in the plan
    bool no_ring_ = false;                        ///< whether this side or the peer has no memory for a ring
    std::unique_ptr<RcRing> ring_in_, ring_out_;  ///< ring that the peer writes into; mirror of the peer's ring
    bool room_wanted_ = false;                    ///< whether send() has returned busy, so that the session waits for room
    bool to_pump_ = false;
    StreamList working_;  ///< streams with data to send, the next one first
    StreamList waiting_;  ///< streams given completely to the queue, but not confirmed yet
    using RcOperationList = List<RcOperation, &RcOperation::hook>;
    RcOperationList issuing_;  ///< operations with parts not yet given to the queue, in order
    RcOperationList issued_;
    List<RcArrival, &RcArrival::hook> expected_;
};

struct RcCounters {
    uint64_t opened = 0, failed = 0, broken = 0;
    uint64_t frames_sent = 0, frames_received = 0, malformed = 0;
    uint64_t frames_by_ring = 0;  ///< frames sent through rings; included in frames_sent
    uint64_t fragments_sent = 0, fragment_bytes_sent = 0, fragments_received = 0, fragment_bytes_received = 0;
};

/// All RC connections of one process. Its functions accept only connections that add() has returned.
class Rc final : public Connections {
  public:
    /// The callback that sends a small packet to the peer on the base path.
    using Tell = void (*)(Connection& connection, packet::PacketKind kind, const void* payload, uint32_t bytes);
    Rc(const ConnectionUpcalls& upcalls, Tell tell) : upcalls_(upcalls), notify_(tell) {}
    ~Rc() override;

    static bool is_offer(const std::byte* offer);
    const char* name() const override { return "RC"; }

    /// Creates a connection in state idle.
    RcConnection& add(const ProcessId& peer, void* user, Session* session, uint8_t place, verbs::Port& port);
    int describe(Connection& connection, packet::PacketKind kind, std::byte* offer, uint32_t& bytes) override;
    int use(Connection& connection, packet::PacketKind kind, const std::byte* offer) override;
    void finish(Connection& connection) override;
    void drop(Connection& connection) override;
    void add_stream(Connection& connection, OutStream& stream) override;
    void remove_stream(OutStream& stream, bool confirmed = false) override;

    /// Handles a packet `wire_lost`: the peer's queue is in error or closed.
    void lose_remote_queue(Connection& connection, const QueuePair& pair);

    /// Handles an event of a port. The event's `user` is the queue's RcConnection.
    void happened(const verbs::VerbsEvent& event);
    /// Breaks the connections of a port that is down. If it is about to be `closed`, its memory is released, too.
    void lose_port(verbs::Port& port, bool closed);
    /// Returns the registrations of a port.
    RcPort& memory_of(uint8_t place, verbs::Port& port);

    /// Registers memory for the peer of an open connection (RcPort::register_memory).
    static RegisteredMemory* register_memory(RcConnection& to, const void* memory, uint64_t bytes, bool stays,
                                             transport::RemoteKey& region);
    /// Withdraws the memory. `at_once`: the peer may be reading it. Some devices finish a read of deregistered memory, so the connection is
    /// broken, which surely ends the read.
    void deregister(RegisteredMemory& loan, bool at_once);

    // Access the peer's memory by an open connection that reaches the region. Return MPI_ERR_OTHER with failure_text() if the operation
    // can't begin. poll() or happened() reports the completion, with MPI_ERR_OTHER if the connection breaks.
    int read(RcConnection& of, const transport::RemoteKey& region, uint64_t offset, void* into, uint64_t bytes,
             transport::Completion& done);
    int write(RcConnection& to, const transport::RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes,
              transport::Completion& done);
    /// Writes to an RDMA target of the peer, which is notified with `word`.
    int write_expected(RcConnection& to, const transport::RemoteKey& region, const void* from, uint64_t bytes, uint32_t word,
                       transport::WriteNotice told, transport::Completion& done);
    /// Implement NotifiedWrites::post on an open connection, and NotifiedWrites::cancel.
    static bool post_rdma_target(RcConnection& from, void* memory, uint64_t bytes, uint32_t word,
                                 transport::RdmaTarget& arrival, transport::RemoteKey& region);
    void cancel_rdma_target(transport::RdmaTarget& arrival, bool at_once);
    /// Continues work that was left by earlier calls. Returns whether anything happened. Must not be called from inside happened().
    bool poll();
    /// Receives frames from the rings; cheap. Returns whether there were any.
    bool poll_rings();
    uint32_t rings() const { return rings_; }
    /// Implements Connector::set_expected_traffic. A connection in the plan gets a ring before its traffic earns one, and has
    /// precedence over connections with less or no expected traffic.
    void set_expected_traffic(RcConnection& connection, uint32_t messages);
    /// Returns whether poll() has something to do.
    bool due() const { return !to_pump_.empty() || !forgotten_.empty() || ended_ || !lost_.empty() || !old_rings_.empty(); }

    StreamTotals fragments_sent() const override { return {counters_.fragments_sent, counters_.fragment_bytes_sent}; }
    const RcCounters& counters() const { return counters_; }

  private:
    friend class RcConnection;
    static RcConnection& of(Connection& connection) { return static_cast<RcConnection&>(connection); }

    // Functions of rc_connection.cpp.
    int make_queue(RcConnection& connection);
    int connect(RcConnection& connection, const verbs::QueueAddress& theirs, uint8_t place);
    void send_hello(RcConnection& connection);
    void on_hello(RcConnection& connection);
    void broke(RcConnection& connection, const std::string& why);
    void release(RcConnection& connection);
    void report_closed(RcConnection& connection);

    // Functions of rc_data_path.cpp.
    verbs::WorkStatus send_frame(RcConnection& connection, RcFrame::RcFrameKind kind, uint32_t word = 0);
    static verbs::WorkStatus post(RcConnection& connection, const iovec* parts, int count);
    void send_finish(RcConnection& connection);
    SendResult send(RcConnection& connection, const iovec* parts, int count);
    void on_frame(RcConnection& connection, const std::byte* data, uint32_t bytes);
    void refuse(RcConnection& connection);
    void on_note(RcConnection& connection, uint32_t word);
    bool handle_frame(RcConnection& connection, const std::byte* data, uint32_t bytes);
    bool handle_fragment(RcConnection& connection, const std::byte* data, uint32_t bytes);
    void on_room(RcConnection& connection);
    bool grant_room(RcConnection& connection);
    void pump(RcConnection& connection);
    bool send_fragment(RcConnection& connection, OutStream& stream);
    void strand(RcConnection& connection);

    // Functions of rdma_operations.cpp.
    RcOperation* begin(RcConnection& connection, RcOperation::RcOperationKind kind, const transport::RemoteKey& region,
                       uint64_t offset, uint64_t bytes, transport::Completion& done);
    RcOperation& acquire_operation(RcConnection& connection, RcOperation::RcOperationKind kind);
    void release_operation(RcOperation& operation);
    bool place_data(RcOperation& operation, void* memory);
    int set_out(RcOperation* operation, void* memory);
    bool issue(RcOperation& operation);
    void issue_all(RcConnection& connection);
    void on_done(const verbs::VerbsEvent& event);
    void end(RcOperation& operation);
    void end_all(RcConnection& connection);
    bool report_ended();

    // Functions of rdma_ring.cpp.
    bool grant_ring(RcConnection& connection, RcRingOffer& offer);
    void drop_ring_in(RcConnection& connection);
    bool on_ring_offer(RcConnection& connection, const std::byte* data, uint32_t bytes);
    bool on_ring_back(RcConnection& connection);
    void on_ring_left(RcConnection& connection);
    bool send_by_ring(RcConnection& connection, const iovec* parts, int count);
    bool settle_ring(RcConnection& connection);
    bool adopt_ring(RcConnection& connection);
    void earn_ring(RcConnection& connection);
    bool may_have_ring(const RcConnection& connection) const;
    bool may_grant_ring(const RcConnection& connection) const;
    void seek_ring(RcConnection& connection);
    void request_ring_back(RcConnection& connection);
    void pass_on_place();

    // Functions of rdma_write_target.cpp.
    bool on_word(RcConnection& connection, uint32_t word);
    void lose_arrivals(RcConnection& connection);
    bool report_lost();

    ConnectionUpcalls upcalls_;
    Tell notify_;
    std::vector<std::unique_ptr<RcPort>> ports_;
    std::vector<std::unique_ptr<RcPort>> gone_;  ///< closed ports; connections that they broke may still refer to them
    std::vector<std::unique_ptr<RcOperation>> operations_;
    std::vector<RcOperation*> free_operations_;
    transport::Completion* ended_ = nullptr;  ///< completions that poll() will report
    transport::Completion** last_ended_ = &ended_;
    uint32_t rings_ = 0;    ///< number of rings that are granted now
    uint32_t in_line_ = 0;  ///< short frames on connections without a ring, since the use of rings was last compared
    /// Rings to be freed by poll(), since a frame being handled may be in one.
    std::vector<std::unique_ptr<RcRing>> old_rings_;
    List<RcArrival, &RcArrival::hook> lost_;  ///< RDMA targets that poll() reports as lost
    RcCounters counters_;
    std::vector<std::unique_ptr<RcConnection>> connections_;
    std::vector<std::unique_ptr<RcConnection>> leaving_;  ///< dropped connections whose last frame is still to be sent
    /// Connections to be freed by poll(); events of this batch may name them.
    std::vector<std::unique_ptr<RcConnection>> forgotten_;
    std::vector<RcConnection*> to_pump_;   ///< connections with more data than one call may send
    std::unique_ptr<std::byte[]> packed_;  ///< buffer for a fragment that is not contiguous in memory
    uint32_t packed_bytes_ = 0;
};

}  // namespace starling::network
