// Connections by queue pairs of an InfiniBand or RoCE device (RC): one queue to one process. The device acknowledges and repeats by
// itself, so there is no silence to measure: a queue works, or it is in error, and that is for good.
//
// How one opens: who asks makes a queue and offers its address; who is asked makes one, connects it and answers with its own; then the first
// connects, and greets by the first frame on the queue. Who hears that greets back, and who has heard a greeting may send. So nothing is
// sent to a queue that is not connected yet, which would break the sender's, and a way that carries nothing is found before anything is given
// to it. Where both ask at once each connects to what the other offers, says so on the base path, and greets once it has heard that.
//
// A device tells nobody at the other end when a queue is closed or in error: that is said on the base path (packet `wire_gone`).
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
#include "transport/transport.h"
#include "transport/verbs/device.h"

namespace starling::network {

/// What a packet `open` or `accept` tells; as long as TCP's, with the version at the same place.
struct RcOffer {
    uint8_t gid_front[8] = {};
    uint16_t lid = 0;
    uint8_t version = 0;
    uint8_t mtu_log = 0;
    uint8_t gid_back[8] = {};
    uint32_t queue : 24 = 0;
    uint32_t place : 8 = 0;  ///< of the port among the sender's
    uint32_t first : 24 = 0;
    uint32_t reads : 8 = 0;
    uint32_t answers = 0;  ///< an accept: the queue that it is for
};
static_assert(sizeof(RcOffer) == 32);
inline constexpr uint8_t kRcVersion = 0x82;  ///< none of TCP's; 0x81 had rings of shorter slots

/// Payload of a packet `wire_gone`: a queue of the sender's, and the one of the receiver's that it was connected to.
struct QueuePair {
    uint32_t of_sender = 0, of_receiver = 0;
};

/// What every frame begins with that is not the session's: those have DatagramHeader::kMagic there.
struct RcFrame {
    static constexpr uint16_t kMagic = 0x6352;
    enum class Kind : uint8_t {
        hello = 1,  ///< the first: this way carries
        piece,      ///< RcPiece, then bytes of a stream
        finish,     ///< the last
        written,    ///< what was expected is there: `bytes` is its word
        ring,       ///< the sender's ring, which frames may be written into; RcRingOffer. A hello may have one, too
        consumed,   ///< of the receiver's ring nothing has told that lately: so many slots were taken
        ring_back,  ///< the sender wants it back
        ring_left,  ///< nothing is written into it any more
    };
    uint16_t magic = kMagic;
    Kind kind = Kind::hello;
    uint8_t version = kRcVersion;
    uint32_t bytes = 0;  ///< of a piece; a word
};
struct RcPiece {
    RcFrame frame;
    uint32_t serial = 0, generation = 0;
    uint64_t offset = 0;
};
static_assert(sizeof(RcFrame) == 8 && sizeof(RcPiece) == 24);

class Rc;
class RcConnection;

/// Memory that the peer writes once, by one connection.
struct RcArrival {
    transport::RdmaTarget* told = nullptr;
    RcConnection* connection = nullptr;  ///< null: it is over, which poll() tells
    Loan* loan = nullptr;
    uint32_t word = 0;
    ListHook hook;
};

/// The device reads, writes or updates memory of the peer, in parts.
struct RcOperation {
    enum class Kind : uint8_t { read, write, add, compare_swap };
    Kind kind = Kind::read;
    RcConnection* connection = nullptr;           ///< null: the place is free
    transport::Completion* completion = nullptr;  ///< null: nobody's
    std::byte* memory = nullptr;
    uint32_t local = 0;    ///< key of that memory; 0: it goes inline
    uint32_t remote = 0;   ///< key of theirs
    uint64_t address = 0;  ///< theirs
    uint64_t bytes = 0, issued = 0;
    uint64_t operand = 0, compare = 0;
    uint32_t under_way = 0;   ///< parts
    bool tells = false;       ///< a write that is expected: the peer is told `word`
    bool owes_frame = false;  ///< that is a frame, not sent yet
    uint32_t word = 0;
    uint32_t generation = kCounterStart;
    uint32_t index = 0;
    bool failed = false;
    verbs::Registration* registration = nullptr;
    std::byte* slot = nullptr;  ///< of the port's, where `memory` is then,
    void* copy_to = nullptr;    ///< and what is read goes from there
    ListHook hook;              ///< in its connection's list

    uint64_t token() const { return uint64_t{generation} << 32 | index; }
    bool all_issued() const { return issued == bytes && !owes_frame; }
};

class RcConnection final : public Connection {
  public:
    RcConnection(Rc& by, RcPort& port);
    ~RcConnection() override = default;

    Sent send(const iovec* parts, int count) override;
    bool stalls(uint64_t) override { return state_ != State::open; }
    uint32_t frame_limit() const override { return frame_limit_; }
    bool by_device() const override { return true; }

    /// The port that it uses; its queue, null before and after.
    verbs::Port& port() const { return port_->port(); }
    /// The port's memory; and whether a region of the peer's is of the port that the connection goes to.
    RcPort& memory() const { return *port_; }
    bool reaches(const transport::Region& region) const {
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
    bool crossed_ = false;      ///< both have asked
    bool greets_ = false;       ///< the greeting is to be sent, or was
    bool owes_hello_ = false;   ///< there was no room for it
    bool owes_finish_ = false;  ///< likewise
    bool finish_sent_ = false;
    bool heard_finish_ = false;
    bool owes_left_ = false;                      ///< as owes_hello_: that nothing is written into the peer's ring any more
    uint32_t frames_out_ = kCounterStart;         ///< given to the queue
    uint32_t frames_in_ = kCounterStart;          ///< that have come by it
    uint64_t short_frames_ = 0;                   ///< of late, those that a ring takes
    uint32_t foreseen_ = 0;                       ///< messages that a plan expects; 0: it does not name it
    bool no_ring_ = false;                        ///< there is no memory for one here, or there
    std::unique_ptr<RcRing> ring_in_, ring_out_;  ///< that the peer writes into; the mirror of the peer's
    bool room_wanted_ = false;                    ///< send() has said busy
    bool to_pump_ = false;
    StreamList working_;  ///< streams that have work, next first
    StreamList waiting_;  ///< all given to the queue, not confirmed yet
    using Operations = List<RcOperation, &RcOperation::hook>;
    Operations issuing_;  ///< not all of their parts are given to the queue; the first is next
    Operations issued_;
    List<RcArrival, &RcArrival::hook> expected_;
};

struct RcCounters {
    uint64_t opened = 0, failed = 0, broken = 0;
    uint64_t frames_sent = 0, frames_received = 0, malformed = 0;
    uint64_t frames_by_ring = 0;  ///< sent; of frames_sent
    uint64_t pieces_sent = 0, piece_bytes_sent = 0, pieces_received = 0, piece_bytes_received = 0;
};

/// All RC connections of one process. The connections that it is given are its own.
class Rc final : public Connections {
  public:
    /// Besides ConnectionUpcalls: has a small packet sent to the peer, on the base path.
    using Tell = void (*)(Connection& connection, packet::Kind kind, const void* payload, uint32_t bytes);
    Rc(const ConnectionUpcalls& upcalls, Tell tell) : upcalls_(upcalls), tell_(tell) {}
    ~Rc() override;

    static bool is_offer(const std::byte* offer);
    const char* name() const override { return "RC"; }

    /// A connection in state idle.
    RcConnection& add(const ProcessId& peer, void* user, Session* session, uint8_t place, verbs::Port& port);
    int describe(Connection& connection, packet::Kind kind, std::byte* offer, uint32_t& bytes) override;
    int use(Connection& connection, packet::Kind kind, const std::byte* offer) override;
    void finish(Connection& connection) override;
    void drop(Connection& connection) override;
    void add_stream(Connection& connection, OutStream& stream) override;
    void remove_stream(OutStream& stream, bool confirmed = false) override;

    /// The peer says so (packet `wire_gone`).
    void lose_remote_queue(Connection& connection, const QueuePair& pair);

    /// What a port has told of a queue; `user` is its RcConnection.
    void happened(const verbs::Event& event);
    /// The port is down: its queues break. Or about to be `closed`: its memory is not touched any more, either.
    void lose_port(verbs::Port& port, bool closed);
    /// What the port is told of memory.
    RcPort& memory_of(uint8_t place, verbs::Port& port);

    /// Lends memory to the peer by an open connection (RcPort::register_memory).
    static Loan* register_memory(RcConnection& to, const void* memory, uint64_t bytes, bool stays, transport::Region& region);
    /// `at_once`: the peer may be reading, and what its device has asked for ours goes on to send on some devices, registered or not: so
    /// the connection is broken, which ends that for certain.
    void deregister(Loan& loan, bool at_once);

    // Memory of the peer, by an open connection that reaches the region; MPI_ERR_OTHER with failure_text(): it can't be begun. The completion
    // comes from poll() or happened(), with MPI_ERR_OTHER if the connection breaks.
    int read(RcConnection& of, const transport::Region& region, uint64_t offset, void* into, uint64_t bytes,
             transport::Completion& done);
    int write(RcConnection& to, const transport::Region& region, uint64_t offset, const void* from, uint64_t bytes,
              transport::Completion& done);
    /// What the peer expects: it is told `word`.
    int write_expected(RcConnection& to, const transport::Region& region, const void* from, uint64_t bytes, uint32_t word,
                       transport::WriteNotice told, transport::Completion& done);
    /// Path::post_rdma_target, on an open connection; Transport::cancel_rdma_target.
    static bool post_rdma_target(RcConnection& from, void* memory, uint64_t bytes, uint32_t word,
                                 transport::RdmaTarget& arrival, transport::Region& region);
    void cancel_rdma_target(transport::RdmaTarget& arrival, bool at_once);
    /// Not atomic with what processors do, on most devices.
    int update(RcConnection& of, const transport::Region& region, uint64_t offset, transport::Update how, uint64_t operand,
               uint64_t compare, uint64_t* before, transport::Completion& done);
    /// Goes on with what one call has left. Whether anything happened. Not from inside happened().
    bool poll();
    /// Takes what lies in rings: cheap.
    bool poll_rings();
    uint32_t rings() const { return rings_; }
    /// transport::Path::set_expected_traffic: it has a ring before its traffic has earned one, and before those that a plan does not name, or has less for.
    void set_expected_traffic(RcConnection& connection, uint32_t messages);
    /// Whether poll() has something to do.
    bool due() const { return !to_pump_.empty() || !forgotten_.empty() || ended_ || !lost_.empty() || !old_rings_.empty(); }

    StreamTotals pieces_sent() const override { return {counters_.pieces_sent, counters_.piece_bytes_sent}; }
    const RcCounters& counters() const { return counters_; }

  private:
    friend class RcConnection;
    static RcConnection& of(Connection& connection) { return static_cast<RcConnection&>(connection); }

    // rc_connection.cpp
    int make_queue(RcConnection& connection);
    int connect(RcConnection& connection, const verbs::QueueAddress& theirs, uint8_t place);
    void greet(RcConnection& connection);
    void on_hello(RcConnection& connection);
    void broke(RcConnection& connection, const std::string& why);
    void release(RcConnection& connection);
    void tell_gone(RcConnection& connection);

    // rc_data_path.cpp
    verbs::Status send_frame(RcConnection& connection, RcFrame::Kind kind, uint32_t word = 0);
    static verbs::Status post(RcConnection& connection, const iovec* parts, int count);
    void say_finish(RcConnection& connection);
    Sent send(RcConnection& connection, const iovec* parts, int count);
    void on_frame(RcConnection& connection, const std::byte* data, uint32_t bytes);
    void refuse(RcConnection& connection);
    void on_note(RcConnection& connection, uint32_t word);
    bool take_frame(RcConnection& connection, const std::byte* data, uint32_t bytes);
    bool take_piece(RcConnection& connection, const std::byte* data, uint32_t bytes);
    void on_room(RcConnection& connection);
    bool give_room(RcConnection& connection);
    void pump(RcConnection& connection);
    bool send_piece(RcConnection& connection, OutStream& stream);
    void strand(RcConnection& connection);

    // rdma_operations.cpp
    RcOperation* begin(RcConnection& connection, RcOperation::Kind kind, const transport::Region& region, uint64_t offset,
                       uint64_t bytes, transport::Completion& done);
    RcOperation& take_operation(RcConnection& connection, RcOperation::Kind kind);
    void give_operation(RcOperation& operation);
    bool place_data(RcOperation& operation, void* memory);
    int set_out(RcOperation* operation, void* memory);
    bool issue(RcOperation& operation);
    void issue_all(RcConnection& connection);
    void on_done(const verbs::Event& event);
    void end(RcOperation& operation);
    void end_all(RcConnection& connection);
    bool tell_ended();

    // rdma_ring.cpp
    bool grant_ring(RcConnection& connection, RcRingOffer& offer);
    void drop_ring_in(RcConnection& connection);
    bool on_ring_offer(RcConnection& connection, const std::byte* data, uint32_t bytes);
    bool on_ring_back(RcConnection& connection);
    void on_ring_left(RcConnection& connection);
    bool send_by_ring(RcConnection& connection, const iovec* parts, int count);
    bool settle_ring(RcConnection& connection);
    bool take_ring(RcConnection& connection);
    void earn_ring(RcConnection& connection);
    bool may_have_ring(const RcConnection& connection) const;
    bool may_give_ring(const RcConnection& connection) const;
    void seek_ring(RcConnection& connection);
    void ask_back(RcConnection& connection);
    void pass_on_place();

    // rdma_write_target.cpp
    bool on_word(RcConnection& connection, uint32_t word);
    void lose_arrivals(RcConnection& connection);
    bool tell_lost();

    ConnectionUpcalls upcalls_;
    Tell tell_;
    std::vector<std::unique_ptr<RcPort>> ports_;
    std::vector<std::unique_ptr<RcPort>> gone_;  ///< closed; connections that broke with them may still name them
    std::vector<std::unique_ptr<RcOperation>> operations_;
    std::vector<RcOperation*> free_operations_;
    transport::Completion* ended_ = nullptr;  ///< to be told by poll()
    transport::Completion** last_ended_ = &ended_;
    uint32_t rings_ = 0;                              ///< granted
    uint32_t in_line_ = 0;                            ///< short frames for want of one, since a look at that
    std::vector<std::unique_ptr<RcRing>> old_rings_;  ///< what is taken of them now may lie there
    List<RcArrival, &RcArrival::hook> lost_;          ///< to be told by poll()
    RcCounters counters_;
    std::vector<std::unique_ptr<RcConnection>> connections_;
    std::vector<std::unique_ptr<RcConnection>> leaving_;    ///< dropped, their last word not yet sent
    std::vector<std::unique_ptr<RcConnection>> forgotten_;  ///< events that were taken together may still name them
    std::vector<RcConnection*> to_pump_;                    ///< had more to send than one call may take
    std::unique_ptr<std::byte[]> packed_;                   ///< a piece of data that does not lie in one block
    uint32_t packed_bytes_ = 0;
};

}  // namespace starling::network
