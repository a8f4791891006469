// What a transport is: code that brings packets to other processes. All that the rooms above know of one is on this page.
//
// A transport makes a *path* to every process that it reaches, at once and without asking that process: the base path. It tells
// what comes, and what becomes of its paths, to the one *sink* above it. What else it can do it says in its traits: open a
// connection to who has earned one, carry long messages as streams, update memory that was registered with it, send to groups. What it
// can't do gives MPI_ERR_UNSUPPORTED_OPERATION, and those above have a way with packets instead.
//
// docs/new-transport.md walks through the smallest transport (transport/loopback), and tests/unit/transport_contract_test.cpp is
// what every one has to pass. Not thread-safe: all calls under the library's lock.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "job/job_segment.h"
#include "transport/packet.h"
#include "transport/stream.h"

namespace starling::transport {

/// A process, by what is known of its job on this host.
struct Process {
    const job::JobSegment* segment = nullptr;  ///< lasts as long as any path to a process of the job
    uint32_t rank = 0;
    job::JobId job() const { return segment->header().id; }
    bool operator==(const Process& other) const { return rank == other.rank && job() == other.job(); }
};

/// What a transport can do besides moving packets.
enum Capability : uint32_t {
    kRegions = 1,        ///< put, get and update registered memory without its owner's help
    kGroups = 2,         ///< send datagrams to all members of a group at once
    kConnections = 4,    ///< has a connector()
    kStreams = 8,        ///< its paths carry streams
    kSharesMemory = 16,  ///< those it reaches are on this host: the kernel copies between them, and their regions can be seen
    kRails = 32,         ///< uses several interfaces, which come and go
};

/// What a transport is like; constant.
struct Traits {
    const char* name;
    const char* reaches;  ///< whom, for people
    uint32_t can;         ///< of Capability
    uint32_t
        latency_ns;  ///< of a short packet where nobody shares a core, about. Of those that reach a process the least is taken
    uint32_t payload;  ///< bytes of the longest packet that a path ever takes
};

/// Every path takes a packet of so many bytes at any time, so that nobody has to ask for short ones.
inline constexpr uint32_t kLeastPayload = 512;

/// One packet as it is delivered; valid during the call. `payload` is aligned to 8, and header.stamp means nothing.
struct Packet {
    const packet::Header& header;
    const std::byte* payload;
};

class Path;
class Transport;

/// Memory of ours that another process writes by itself, once, and then says so: Path::post_rdma_target(). Keep it until it has been told of, or called off.
struct RdmaTarget {
    /// From inside poll(). `written`: all of it is there. Else the way by which that could have been is over, and it won't be.
    void (*then)(RdmaTarget& self, bool written) = nullptr;
    void* place = nullptr;  ///< the transport's; null: nothing is expected
};

/// How a write is told to who expects it.
enum class WriteNotice : uint8_t {
    separate_send,   ///< by a word of its own, chained behind the write
    write_with_imm,  ///< by the write itself: one piece of work less for the device
};

/// Memory as others name it, once its owner has told them (an rkey, elsewhere). Opaque but to the transport.
struct Region {
    uint64_t word[2] = {};
};

/// A place for one packet.
struct Slot {
    std::byte* payload = nullptr;
    packet::Header* header = nullptr;
    Path* path = nullptr;   ///< that commits it
    bool rotates = false;   ///< the payload lies in memory that is used in rotation: CopyPath::Into (base/copy.h)
    bool quiet = false;     ///< who it is for need not wake for it: a transport that can, lets it lie until there is more to do
    void* place = nullptr;  ///< the path's own
};

/// A way to one process. Made by Transport::attach(), gone with detach(). Packets arrive once, or the path
/// fails; and in order, but where a connection begins or ends.
class Path {
  public:
    Path(Transport& by, const Process& to, void* user) : by(by), to(to), user(user) {}
    Path(const Path&) = delete;
    Path& operator=(const Path&) = delete;
    virtual ~Path() = default;

    Transport& by;
    const Process to;
    void* user;  ///< what the sink is told instead of the path

    /// The longest payload that a packet can have now, at least kLeastPayload and at most Traits::payload. It may change between
    /// two packets.
    virtual uint32_t payload_limit() const = 0;
    /// A place for a packet of `bytes`, at most payload_limit(). False if there is no room now, or never again since the path
    /// has failed or was closed. What was reserved must be committed before anything else is reserved.
    virtual bool reserve(uint32_t bytes, Slot& slot) = 0;
    /// Sends the packet: the header is filled but for stamp, where and bytes; the payload has at most as many bytes as were
    /// reserved. Who it is for wakes if it sleeps, unless the packet is quiet.
    virtual void commit(Slot& slot, uint32_t bytes) = 0;
    /// Whether all that was sent has arrived, so that this process may end.
    virtual bool idle() const = 0;
    /// The process is gone, or nothing is wanted of it any more: takes and delivers nothing from now on. Safe from inside the sink.
    virtual void close() = 0;

    // Where nobody tells when a process dies, but its silence.
    /// 0, or since when (ns) something has waited for a sign of life, or to learn where the process is.
    virtual uint64_t silent_since() const { return 0; }
    /// The process lives, says somebody who can know; where it is stands in its segment. It `looks`: it does not compute, so it should
    /// have answered.
    virtual void confirm_alive(bool looks) { (void)looks; }

    // Streams, if traits.can has kStreams: what is long, from the sender's memory into the receiver's.
    /// Whether a connection of the path has the stream and goes on with it, or takes it now. What one can't carry is stranded
    /// (OutStream::Source) and goes as packets.
    virtual bool carry(OutStream& stream) { return (void)stream, false; }
    /// The stream's memory is not read after this. `confirmed`: the receiver has it all.
    virtual void end(OutStream& stream, bool confirmed) { (void)stream, (void)confirmed; }
    /// The payload of packets that is best for what is cut anyway.
    virtual uint32_t piece_limit() const { return payload_limit(); }

    // Memory that the other process reaches by itself, where a connection can do that (traits.can then says nothing of it).
    /// Lets the other process read and write it by Transport::put and get, and update it, once it has been told the region. The memory
    /// `stays` where it is until take_back(); else that is cheap for memory that was lent before. Null: not now.
    virtual void* register_memory(const void* memory, uint64_t bytes, bool stays, Region& region) {
        return (void)memory, (void)bytes, (void)stays, (void)region, nullptr;
    }
    /// Whether that may be: a connection is open whose device reaches memory.
    virtual bool lends() const { return false; }
    /// Whether put, get and update of a region that the other process has lent are carried out now; they may fail all the same, with
    /// the connection.
    virtual bool reaches(const Region& region) const { return (void)region, false; }

    /// Lets the other process write the memory by Transport::write(), once it has been told the region and `word`, which differs from those of others
    /// that are expected of it. False: not now.
    virtual bool post_rdma_target(void* memory, uint64_t bytes, uint32_t word, RdmaTarget& arrival, Region& region) {
        return (void)memory, (void)bytes, (void)word, (void)arrival, (void)region, false;
    }

    /// A plan expects so many messages with the process, both ways, in the phase that goes on; 0: it does not name it. What decides who gets what a
    /// transport has few of besides places for connections.
    virtual void set_expected_traffic(uint32_t messages) { (void)messages; }

    /// A packet of a kind that belongs to the transport: it was sent with Sink::send().
    virtual void take(const Packet& packet) { (void)packet; }
};

/// Connections: a way of one's own to a process, earned by traffic, which packets of its path then take. They are opened by one
/// exchange of packets on the base path and given back. When, link/connection decides, with the same machine for all; this is what it
/// has carried out. A transport has a limited number of places for them.
class Connector {
  public:
    /// Whether so many packets and bytes of long messages to one process, of late, earn one.
    virtual bool earned(uint32_t packets, uint64_t bytes) const = 0;
    /// Whether so many messages of so many bytes in all go faster on a connection than on the base path.
    virtual bool speeds_up(uint64_t messages, uint64_t bytes) const { return (void)messages, (void)bytes, true; }
    virtual bool has_place() = 0;
    virtual void acquire_slot(Path& path) = 0;
    /// What a packet `open` or `accept` tells the other side so that it may send to us, at most kOffer bytes; gives its length.
    static constexpr uint32_t kOffer = 32;
    virtual uint32_t describe(Path& path, packet::Kind kind, std::byte* offer) = 0;
    /// Whether `offer`, zeros behind its end, can be what the other side wrote.
    virtual bool is_offer(const std::byte* offer) const = 0;
    /// Begins to send by what the packet has offered: `ready`, now or later, tells that it can be done, else `broken`.
    virtual void use(Path& path, packet::Kind kind, const std::byte* offer) = 0;
    /// The last word on the connection; packets take the base path from now on.
    virtual void finish(Path& path) = 0;
    /// All of it is over, whatever its state.
    virtual void release_slot(Path& path) = 0;
    /// The peer has answered that the connection asked for can't be opened, for another reason than that it has no place. give_place()
    /// follows.
    virtual void failed_there(Path&) {}
    /// Visits the users of paths that have a place.
    virtual void each_user(void (*visit)(void* user, void* argument), void* argument) = 0;

  protected:
    ~Connector() = default;
};

enum class ConnectionEvent : uint8_t {
    ready,      ///< the connection carries
    ended,      ///< the other side has finished: everything sent on it was delivered
    broken,     ///< it did not open, or died
    surpassed,  ///< one that opened now would be of a better kind
};

/// Somebody who sends to us without having been met.
struct UnknownSender {
    job::JobAddress job;
    uint32_t rank;
};

/// What the room above a transport is told: deliveries and failures from inside poll() only. It may reserve, commit and close on any path,
/// attach others, and must not poll or detach. std::bad_alloc from deliver() means: this packet again at the next poll, in its turn.
class Sink {
  public:
    virtual void deliver(void* user, const Packet& packet) = 0;
    /// Gives the path to use: one that there is already, or made with attach(). Null: the packet is dropped, or if `later` was set kept and asked about again.
    virtual Path* on_unknown_sender(const UnknownSender& caller, bool& later) = 0;
    /// This host's segment of a job that somebody says to be of, for as long as the call's poll. Null: it is not known, or not yet, and is
    /// asked for.
    virtual const job::JobSegment* find_segment(job::JobId) { return nullptr; }
    /// Nothing comes by this path any more, and what was sent may be lost; failure_text() says why. It is closed already.
    virtual void failed(void* user) = 0;
    /// Of a connection.
    virtual void connection(void* user, ConnectionEvent news) = 0;
    /// It is not known where the process is: vouch(), once that is in its segment.
    virtual void locate(void* user) = 0;
    /// Has a small packet of the transport's own sent, as soon as there is room.
    virtual void send(void* user, packet::Kind kind, const void* payload, uint32_t bytes) = 0;

    /// Where bytes [done, done + bytes) of a stream's piece go: memory for all of them, or nullptr to get them by unpack(). Asked
    /// before each read, so a receive that has completed meanwhile says nullptr and ignores unpack().
    virtual std::byte* target(void* user, const StreamFragment& piece, uint64_t done, uint64_t bytes) = 0;
    virtual void unpack(void* user, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) = 0;
    /// All bytes of the piece are where they belong. It may be one that has come before: count with Coverage.
    virtual void piece(void* user, const StreamFragment& piece) = 0;
    /// Something has come for this process itself, perhaps while another of its threads sleeps.
    virtual void wake() = 0;

  protected:
    ~Sink() = default;
};

/// How memory is updated as one step, also against all other updates.
enum class Update : uint8_t {
    add,
    exchange,          ///< sets it to the operand
    compare_exchange,  ///< the same if it was equal to `compare`
};

/// A put, get or update under way. Keep it, and the memory that the call names, until it is done: poll() says so.
struct Completion {
    bool done = false;
    int error = 0;  ///< MPI_SUCCESS, or why it was not carried out
    void (*then)(Completion& self) = nullptr;
    Completion* next = nullptr;  ///< the transport's
};

/// What all members of a group call it.
struct GroupName {
    uint64_t place = 0;  ///< groups of one place may have an address of the network in common
    uint64_t key = 0;    ///< of this group alone: its datagrams show it, and what shows another is dropped. Not 0
    uint64_t secret[4] = {};  ///< its members' alone, who seal by it what they send
};

/// Whom a group's datagrams are told, from inside poll() only; he may send, and must neither join nor leave.
class DatagramHandler {
  public:
    /// One that a member has sent; valid during the call. It may come twice, late, or not at all, and the sender's own may come back.
    virtual void datagram(const std::byte* data, uint32_t bytes) = 0;

  protected:
    ~DatagramHandler() = default;
};

/// This process's membership in a group; its end is that of the membership.
class Group {
  public:
    Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    virtual ~Group() = default;

    /// Sends a datagram, at most Transport::group_payload() bytes, to all other members: no one knows whether it arrives. At most three parts.
    /// False: there is no room now.
    virtual bool send(const iovec* parts, int count) = 0;
    /// Until then datagrams may wait for others, which the kernel takes in one call.
    virtual void flush() {}
    /// A member hears nothing of what is sent: another rail, if there is one.
    virtual void report_unreachable() {}
};

class Transport {
  public:
    explicit Transport(const Traits& traits) : traits(traits) {}
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    const Traits& traits;

    // Paths.
    virtual bool reaches(const Process& process) const = 0;
    /// Makes the path to a process that it reaches; constant time, asks nobody. An MPI error class with failure_text().
    virtual int attach(const Process& to, void* user, Path*& out) = 0;
    /// Ends a path: it is closed and its pointer dead. Not from inside the sink.
    virtual void detach(Path& path) = 0;
    /// The job is gone, all paths to it are closed and about to be detached: nothing here names it any more.
    virtual void forget(job::JobId job) { (void)job; }
    /// Lets those who ask know that this process is there, or has finalized.
    virtual void announce(bool finalized) { (void)finalized; }
    /// Null if it has no connections.
    virtual Connector* connector() { return nullptr; }

    // Time.
    /// How urgent a poll is: others have just brought something, so that what costs a system call may be left out now and then;
    /// nobody has; or all that has come must be taken now, as somebody is about to be declared gone.
    enum class Look : uint8_t { busy, quiet, now };
    /// Takes what has come and goes on with what waits. Whether anything was delivered or completed, or there is room again.
    virtual bool poll(Look look) = 0;
    /// Slow: takes back what a dead sender has left half done, which hides what lies behind it. Whether there was such a thing.
    virtual bool recover() { return false; }
    /// Readable when poll() would find something. -1: who sends rings the doorbell of this process's region instead.
    virtual int wait_fd() const { return -1; }
    /// Before a sleep on it: from now on it tells of all that comes, even where that costs something, until disarm(). False: something has
    /// come, so don't sleep.
    virtual bool arm() { return true; }
    virtual void disarm() {}
    /// It was found readable: the next poll() looks everywhere.
    virtual void woken() {}
    /// When poll() must be called though nobody wakes us; ns of base/clock.h, UINT64_MAX: never. May be in the past.
    virtual uint64_t next_deadline() const { return UINT64_MAX; }
    /// Between these packets may wait so that several go out together. They nest.
    virtual void begin_batch() {}
    virtual void end_batch() {}
    /// This process will not poll for long, or never again: what was held back goes out.
    virtual void flush() {}
    /// It waits for acknowledgements alone now: what peers hold back is asked for.
    virtual void request_acks() {}

    /// Ends what Path::register_memory() began, also if the path is gone. `at_once`: nobody reaches it any more, even if an access is under way, which
    /// then fails. Else none is.
    virtual void deregister(void* loan, bool at_once) { (void)loan, (void)at_once; }
    /// Ends what Path::post_rdma_target() began; it is told nothing. `at_once`: the other process may be writing, and does not from now on. Else it is known not to.
    virtual void cancel_rdma_target(RdmaTarget& arrival, bool at_once) { (void)arrival, (void)at_once; }
    /// Writes memory that the other process expects (Path::post_rdma_target), all of it, and tells it so. MPI_ERR_OTHER with failure_text(): nothing has
    /// happened, and won't.
    virtual int write(Path& to, const Region& region, const void* from, uint64_t bytes, uint32_t word, WriteNotice told,
                      Completion& done);

    // Registered memory, if traits.can has kRegions, or where Path::reaches() says so. There is no order between operations, nor between them and packets, but
    // that what is done before another is asked for has happened before it. One that does not fit into its region has an error.
    /// Lets others reach this memory until withdraw(); it must not move. Tell them the region in a packet.
    virtual int expose(void* memory, uint64_t bytes, Region& out);
    virtual int withdraw(const Region& region);
    virtual int put(Path& to, const Region& region, uint64_t offset, const void* from, uint64_t bytes, Completion& done);
    virtual int get(Path& of, const Region& region, uint64_t offset, void* into, uint64_t bytes, Completion& done);
    /// Updates a word of 8 bytes, aligned to that; `before` gets what was in it.
    virtual int update(Path& of, const Region& region, uint64_t offset, Update how, uint64_t operand, uint64_t compare,
                       uint64_t* before, Completion& done);

    // Groups, if traits.can has kGroups.
    /// Makes this process a member of the group of that name: from some moment on it is told what the others send. Asks nobody, and
    /// so nobody says when. An MPI error class with failure_text(): the network does not have groups, or no more of them.
    virtual int join(const GroupName& name, DatagramHandler& audience, std::unique_ptr<Group>& out);
    /// The longest datagram to a group, bytes.
    virtual uint32_t group_payload() const { return 0; }

  protected:
    int unsupported(const char* what) const;
};

/// While one lives, a transport's packets wait so that several go out together. Null: nothing waits.
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
