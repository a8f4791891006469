// The interface of a transport, which is code that delivers packets to other processes. The rooms above know nothing else of a transport.
//
// A transport creates a *path* to every process that it reaches, at once and without a handshake: the base path. It reports arrivals and
// the state of its paths to the one *sink* above it. Its traits list its further capabilities: opening a connection for a peer whose
// traffic justifies one, streams for long messages, updates of registered memory, sending to groups. A call outside its capabilities
// returns MPI_ERR_UNSUPPORTED_OPERATION, and the rooms above use packets instead.
//
// docs/new-transport.md walks through the smallest transport (transport/loopback), and every transport must pass
// tests/unit/transport_contract_test.cpp. Not thread-safe: all calls under the library's lock.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "job/job_segment.h"
#include "transport/packet.h"
#include "transport/stream.h"

namespace starling::transport {

/// A process, identified by this host's segment of its job and its rank.
struct ProcessAddress {
    /// The job's segment on this host, valid as long as any path to a process of the job.
    const job::JobSegment* segment = nullptr;
    uint32_t rank = 0;
    job::JobId job() const { return segment->header().id; }
    bool operator==(const ProcessAddress& other) const { return rank == other.rank && job() == other.job(); }
};

/// Capabilities of a transport besides moving packets.
enum Capability : uint32_t {
    kRegions = 1,        ///< put, get and update of registered memory without its owner's help
    kGroups = 2,         ///< one send reaches all members of a group
    kConnections = 4,    ///< connections on demand: connector() is not null
    kStreams = 8,        ///< its paths carry streams
    kSharesMemory = 16,  ///< peers on this host only: the kernel copies between processes, and their regions are visible
    kRails = 32,         ///< several interfaces in use, which may appear and disappear
};

/// Constant properties of a transport.
struct Traits {
    const char* name;
    const char* reaches;    ///< description of the processes that it reaches, for users
    uint32_t capabilities;  ///< bits of Capability
    /// Approximate latency of a short packet if the processes share no core. The lowest of the transports that reach a peer is chosen.
    uint32_t latency_ns;
    uint32_t payload;  ///< bytes of the longest payload that a path ever takes
};

/// Payload bytes that every path accepts at any time, so that senders of short packets need not query the limit.
inline constexpr uint32_t kLeastPayload = 512;

/// One packet as it is delivered; valid during the call. `payload` is aligned to 8 bytes, and header.stamp has no meaning.
struct Packet {
    const packet::Header& header;
    const std::byte* payload;
};

class Path;
class Transport;

/// Memory of this process that a peer will write once by RDMA, with a notification: Path::post_rdma_target(). Keep it alive until `then`
/// has been called or cancel_rdma_target() has returned.
struct RdmaTarget {
    /// Called from inside poll(). `written`: all of the data has arrived. Otherwise the connection for the write has failed, and no write
    /// follows.
    void (*then)(RdmaTarget& self, bool written) = nullptr;
    void* place = nullptr;  ///< state owned by the transport; null: no write is expected
};

/// The way in which an RDMA write notifies its receiver.
enum class WriteNotice : uint8_t {
    separate_send,   ///< a send that is chained behind the write notifies the receiver
    write_with_imm,  ///< the write's immediate data notifies the receiver: one work request less for the device
};

/// The name under which peers access registered memory, once its owner has sent it to them (elsewhere: an rkey). Opaque to all but the
/// transport.
struct RemoteKey {
    uint64_t word[2] = {};
};

/// Reserved space for one packet.
struct PacketSlot {
    std::byte* payload = nullptr;
    packet::Header* header = nullptr;
    Path* path = nullptr;  ///< the path that commits it
    /// Whether the payload lies in memory that is used in rotation: CopyPath::CopyDestination (base/copy.h).
    bool rotates = false;
    /// Whether the receiver need not wake for this packet: a transport may delay it until other packets follow.
    bool quiet = false;
    void* place = nullptr;  ///< state owned by the path
};

/// A path to one process, created by Transport::attach() and destroyed by detach(). Each packet arrives exactly once, or the path fails.
/// Packets arrive in order, except where a connection begins or ends.
class Path {
  public:
    Path(Transport& by, const ProcessAddress& to, void* user) : by(by), to(to), user(user) {}
    Path(const Path&) = delete;
    Path& operator=(const Path&) = delete;
    virtual ~Path() = default;

    Transport& by;
    const ProcessAddress to;
    void* user;  ///< value that is passed to the sink in place of the path

    /// Returns the longest payload that a packet can have now, at least kLeastPayload and at most Traits::payload. It may change between
    /// two packets.
    virtual uint32_t payload_limit() const = 0;
    /// Reserves space for a packet of `bytes`, at most payload_limit(). Returns false if there is no room now, or if the path has failed or
    /// was closed, after which it never has room again. Commit each reservation before the next reserve().
    virtual bool reserve(uint32_t bytes, PacketSlot& slot) = 0;
    /// Sends the reserved packet. The caller has filled the header except stamp, where and bytes; the payload has at most the reserved
    /// number of bytes. The receiver wakes if it sleeps, unless the packet is quiet.
    virtual void commit(PacketSlot& slot, uint32_t bytes) = 0;
    /// Returns whether everything sent has arrived, so that this process may end.
    virtual bool idle() const = 0;
    /// Closes the path, because the process has ended or is no longer needed: the path neither sends nor delivers from now on. Safe to call
    /// from inside the sink.
    virtual void close() = 0;

    // Functions for transports on which only silence shows that a process has died.
    /// Returns the time (ns) since which something has waited for a sign of life, or for the process's address; 0: nothing waits.
    virtual uint64_t silent_since() const { return 0; }
    /// Reports that the process is alive, on evidence from outside this path. The process's address is in its segment. `looks`: the process
    /// has been polling, so it should have answered.
    virtual void confirm_alive(bool looks) { (void)looks; }

    // Streams, if traits.can has kStreams: long data that is sent from the sender's memory straight into the receiver's.
    /// Sends the stream over a connection of the path, if there is one. Returns whether a connection carries the stream, now or from an
    /// earlier call. Data that a connection cannot carry is stranded (OutStream::StreamSource) and is sent as packets.
    virtual bool carry(OutStream& stream) { return (void)stream, false; }
    /// Ends the stream: its memory is not read afterwards. `confirmed`: the receiver has all of the data.
    virtual void end(OutStream& stream, bool confirmed) { (void)stream, (void)confirmed; }
    /// Returns the best payload size for data that is sent in fragments anyway.
    virtual uint32_t fragment_limit() const { return payload_limit(); }

    // Memory that the peer accesses by RDMA, if a connection is capable of it (independent of traits.can).
    /// Lets the peer access the memory by Transport::put, get and update, once the region was sent to it. `stays`: the memory stays mapped
    /// where it is until deregister(). Otherwise the registration is cached, so that repeating it is cheap. Returns null if registration is
    /// not possible now.
    virtual void* register_memory(const void* memory, uint64_t bytes, bool stays, RemoteKey& region) {
        return (void)memory, (void)bytes, (void)stays, (void)region, nullptr;
    }
    /// Returns whether register_memory() can succeed: a connection is open whose device accesses memory.
    virtual bool lends() const { return false; }
    /// Returns whether put, get and update of a region of the peer can be carried out now. They may still fail together with the
    /// connection.
    virtual bool reaches(const RemoteKey& region) const { return (void)region, false; }

    /// Lets the peer write the memory by Transport::write(), once the region and `word` were sent to it. `word` must differ from those of
    /// the other RDMA targets of this peer. Returns false if this is not possible now.
    virtual bool post_rdma_target(void* memory, uint64_t bytes, uint32_t word, RdmaTarget& arrival, RemoteKey& region) {
        return (void)memory, (void)bytes, (void)word, (void)arrival, (void)region, false;
    }

    /// Sets the number of messages that a plan expects to be exchanged with the peer in the current phase, both directions together; 0: the
    /// plan does not name the peer. The number decides which peers get the transport's scarce resources other than connection slots.
    virtual void set_expected_traffic(uint32_t messages) { (void)messages; }

    /// Handles a packet of a kind that belongs to the transport, which the peer sent by Sink::send().
    virtual void handle(const Packet& packet) { (void)packet; }
};

/// Connections, which traffic justifies: each is a dedicated path to one peer that the packets of the base path then take. One exchange of
/// packets on the base path opens a connection, and closing it frees its slot. link/connection decides when, by the same state machine for
/// all transports, and calls the functions here. A transport has a limited number of connection slots.
class Connector {
  public:
    /// Returns whether this recent traffic with one process, packets and bytes of long messages, justifies a connection.
    virtual bool earned(uint32_t packets, uint64_t bytes) const = 0;
    /// Returns whether `messages` messages of `bytes` bytes in all are faster on a connection than on the base path.
    virtual bool speeds_up(uint64_t messages, uint64_t bytes) const { return (void)messages, (void)bytes, true; }
    virtual bool has_place() = 0;
    virtual void acquire_slot(Path& path) = 0;
    /// Writes the payload of a packet `open` or `accept`, which describes this end of the connection to the peer: at most kOffer bytes.
    /// Returns its length.
    static constexpr uint32_t kOffer = 32;
    virtual uint32_t describe(Path& path, packet::PacketKind kind, std::byte* offer) = 0;
    /// Returns whether `offer`, padded with zeros, is a payload that a peer's describe() can have written.
    virtual bool is_offer(const std::byte* offer) const = 0;
    /// Starts to connect by the payload of the peer's packet. Later the event `ready` reports that the connection carries packets, or
    /// `broken` that it failed. The event may occur within the call.
    virtual void use(Path& path, packet::PacketKind kind, const std::byte* offer) = 0;
    /// Sends the last packet on the connection; later packets take the base path.
    virtual void finish(Path& path) = 0;
    /// Frees the slot and all resources of the connection, whatever its state.
    virtual void release_slot(Path& path) = 0;
    /// Reports that the peer cannot open the connection, for another reason than a lack of slots. release_slot() follows.
    virtual void failed_there(Path&) {}
    /// Calls `visit` with the user of each path that has a slot.
    virtual void each_user(void (*visit)(void* user, void* argument), void* argument) = 0;

  protected:
    ~Connector() = default;
};

enum class ConnectionEvent : uint8_t {
    ready,      ///< the connection carries packets
    ended,      ///< the peer has finished: everything it sent on the connection was delivered
    broken,     ///< the connection did not open, or died
    surpassed,  ///< a connection that opened now would be of a better kind
};

/// A sender to which this process has no path.
struct UnknownSender {
    job::JobAddress job;
    uint32_t rank;
};

/// The room above a transport, which receives deliveries and failures, from inside poll() only. It may reserve, commit and close on any
/// path and attach others, and must not poll or detach. std::bad_alloc from deliver() means that the next poll delivers the packet again,
/// in order.
class Sink {
  public:
    virtual void deliver(void* user, const Packet& packet) = 0;
    /// Returns the path to an unknown sender, an existing one or one made with attach(). Null: the packet is dropped or, if `later` was
    /// set, stored until a later call returns a path.
    virtual Path* on_unknown_sender(const UnknownSender& caller, bool& later) = 0;
    /// Returns this host's segment of the job to which a packet's sender belongs, valid until the current poll ends. Null: the job is
    /// unknown, or its segment has been requested.
    virtual const job::JobSegment* find_segment(job::JobId) { return nullptr; }
    /// Reports that the path has failed: nothing more arrives by it, and packets sent on it may be lost. failure_text() gives the reason.
    /// The path is already closed.
    virtual void failed(void* user) = 0;
    /// Reports an event of the path's connection.
    virtual void connection(void* user, ConnectionEvent news) = 0;
    /// Requests the address of the path's process, which is not known yet. Call confirm_alive() once the address is in the process's
    /// segment.
    virtual void locate(void* user) = 0;
    /// Sends a small packet of one of the transport's own kinds as soon as there is room.
    virtual void send(void* user, packet::PacketKind kind, const void* payload, uint32_t bytes) = 0;

    /// Returns where bytes [done, done + bytes) of a stream fragment belong: memory for all of them, or nullptr to pass them to unpack().
    /// Called before each read, so for a receive that has completed meanwhile it returns nullptr and ignores unpack().
    virtual std::byte* target(void* user, const StreamFragment& piece, uint64_t done, uint64_t bytes) = 0;
    virtual void unpack(void* user, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) = 0;
    /// Reports that all bytes of the stream fragment are in place. It may be a duplicate: count with Coverage.
    virtual void on_fragment(void* user, const StreamFragment& piece) = 0;
    /// Reports that this process has sent something to itself. Wakes this process if another of its threads sleeps.
    virtual void wake() = 0;

  protected:
    ~Sink() = default;
};

/// The kinds of updates of memory, each atomic with respect to all other updates.
enum class AtomicOperation : uint8_t {
    add,
    exchange,          ///< sets the word to the operand
    compare_exchange,  ///< sets the word to the operand if it was equal to `compare`
};

/// The completion of a put, get or update. Keep it, and the memory that the call names, until poll() has set `done`.
struct Completion {
    bool done = false;
    int error = 0;  ///< MPI_SUCCESS, or the reason (error class) why the operation was not carried out
    void (*then)(Completion& self) = nullptr;
    Completion* next = nullptr;  ///< link owned by the transport
};

/// The name that all members of a group use for it.
struct GroupName {
    uint64_t place = 0;       ///< groups with the same `place` may share a network address
    uint64_t key = 0;         ///< unique key of the group, not 0: its datagrams carry the key, and others are dropped
    uint64_t secret[4] = {};  ///< secret known to the members only, with which they encrypt the group's datagrams
};

/// The receiver of a group's datagrams, called from inside poll() only. It may send, and must neither join nor leave.
class DatagramHandler {
  public:
    /// Handles a datagram of a member; `data` is valid during the call. A datagram may arrive twice, late or never, and may be one that
    /// this process sent.
    virtual void datagram(const std::byte* data, uint32_t bytes) = 0;

  protected:
    ~DatagramHandler() = default;
};

/// This process's membership in a group; the destructor leaves the group.
class MulticastMembership {
  public:
    MulticastMembership() = default;
    MulticastMembership(const MulticastMembership&) = delete;
    MulticastMembership& operator=(const MulticastMembership&) = delete;
    virtual ~MulticastMembership() = default;

    /// Sends an unreliable datagram, at most Transport::group_payload() bytes in at most three parts, to all other members. Returns false
    /// if there is no room now.
    virtual bool send(const iovec* parts, int count) = 0;
    /// Sends the datagrams that were held back so that the kernel takes several in one call.
    virtual void flush() {}
    /// Reports that a member receives nothing that is sent: the group switches to another rail, if there is one.
    virtual void report_unreachable() {}
};

class Transport {
  public:
    explicit Transport(const Traits& traits) : traits(traits) {}
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    const Traits& traits;

    // Functions for paths.
    virtual bool reaches(const ProcessAddress& process) const = 0;
    /// Creates the path to a process that this transport reaches, in constant time and without a handshake. Returns an MPI error class with
    /// failure_text().
    virtual int attach(const ProcessAddress& to, void* user, Path*& out) = 0;
    /// Closes and destroys a path. Must not be called from inside the sink.
    virtual void detach(Path& path) = 0;
    /// Frees the transport's state of a job that has ended. All paths to the job are closed and about to be detached, and no later call
    /// names it.
    virtual void forget(job::JobId job) { (void)job; }
    /// Publishes, for processes that ask, that this process can be reached, or has finalized.
    virtual void announce(bool finalized) { (void)finalized; }
    /// Returns the functions for connections; null if the transport has none.
    virtual Connector* connector() { return nullptr; }

    // Functions for polling and time.
    /// The urgency of a poll. `busy`: other transports have just delivered something, so system calls may be skipped now and then. `quiet`:
    /// none has. `now`: everything that has arrived must be delivered, as a process is about to be declared dead.
    enum class PollUrgency : uint8_t { busy, quiet, now };
    /// Delivers arrivals and advances pending operations. Returns whether anything was delivered or completed, or there is room again.
    virtual bool poll(PollUrgency look) = 0;
    /// Removes half-written packets of dead senders, which hide the packets behind them. Slow. Returns whether there were any.
    virtual bool recover() { return false; }
    /// Returns a descriptor that is readable when poll() would find something. -1: senders ring the doorbell of this process's region
    /// instead.
    virtual int wait_fd() const { return -1; }
    /// Call before sleeping on wait_fd(): it then signals every arrival, at some cost, until disarm(). Returns false if something has
    /// arrived already, so that the caller must not sleep.
    virtual bool arm() { return true; }
    virtual void disarm() {}
    /// Reports that the caller found wait_fd() readable: the next poll() polls every source.
    virtual void woken() {}
    /// Returns when poll() must be called even if wait_fd() stays silent; ns of base/clock.h, UINT64_MAX: never. The time may be in the
    /// past.
    virtual uint64_t next_deadline() const { return UINT64_MAX; }
    /// Between begin_batch() and end_batch() packets may be held back so that several are sent together. Batches nest.
    virtual void begin_batch() {}
    virtual void end_batch() {}
    /// Sends everything held back, as this process will not poll for long, or never again.
    virtual void flush() {}
    /// Asks the peers for acknowledgements that they hold back, as this process now waits for acknowledgements only.
    virtual void request_acks() {}

    /// Ends the registration of memory by Path::register_memory(), also after the path was destroyed. `at_once`: no access is possible
    /// afterwards, and one that is in progress fails. Otherwise the caller knows that none is in progress.
    virtual void deregister(void* loan, bool at_once) { (void)loan, (void)at_once; }
    /// Cancels an RDMA target of Path::post_rdma_target(), without calling `then`. `at_once`: the peer may be writing, and is stopped by
    /// this call. Otherwise the caller knows that the peer is not writing.
    virtual void cancel_rdma_target(RdmaTarget& arrival, bool at_once) { (void)arrival, (void)at_once; }
    /// Writes all of the memory that the peer has posted with Path::post_rdma_target, and notifies the peer. Returns MPI_ERR_OTHER with
    /// failure_text() if nothing was written and nothing will be.
    virtual int write(Path& to, const RemoteKey& region, const void* from, uint64_t bytes, uint32_t word, WriteNotice told,
                      Completion& done);

    // Registered memory, if traits.can has kRegions, or where Path::reaches() returns true. Operations are ordered neither with each other
    // nor with packets; only an operation that completed before another was started precedes it. An operation outside its region completes
    // with an error.
    /// Lets other processes access this memory until withdraw(); it must not move. The caller sends the region to them in a packet.
    virtual int expose(void* memory, uint64_t bytes, RemoteKey& out);
    virtual int withdraw(const RemoteKey& region);
    virtual int put(Path& to, const RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes, Completion& done);
    virtual int get(Path& of, const RemoteKey& region, uint64_t offset, void* into, uint64_t bytes, Completion& done);
    /// Updates an aligned word of 8 bytes; `before` receives its old value.
    virtual int update(Path& of, const RemoteKey& region, uint64_t offset, AtomicOperation how, uint64_t operand,
                       uint64_t compare, uint64_t* before, Completion& done);

    // Groups, if traits.can has kGroups.
    /// Makes this process a member of the named group, without a handshake: it receives the other members' datagrams from some later
    /// moment, which is not reported. Returns an MPI error class with failure_text() if the network has no groups, or no more of them.
    virtual int join(const GroupName& name, DatagramHandler& audience, std::unique_ptr<MulticastMembership>& out);
    /// Returns the longest datagram to a group, in bytes.
    virtual uint32_t group_payload() const { return 0; }

  protected:
    int unsupported(const char* what) const;
};

/// A guard for a batch: while it exists, its transport may hold packets back so that several are sent together. A null transport has no
/// effect.
class Batch {
  public:
    explicit Batch(Transport* of) : of_(of) {
        if (of_) of_->begin_batch();
    }
    Batch(const Batch&) = delete;
    ~Batch() {
        if (of_) of_->end_batch();
    }

  private:
    Transport* of_;
};

}  // namespace starling::transport
