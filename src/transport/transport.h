// The interface of a transport, which is code that delivers packets to other processes. The rooms above use a transport only through it.
//
// A transport creates a *path* to every process that it reaches, at once and without a handshake: the base path. It reports arrivals and
// the state of its paths to the one *sink* above it (sink.h). Further capabilities have separate interfaces, which a transport
// returns, or null. These are connections to peers whose traffic justifies one (connector.h), streams for long messages (stream.h), RDMA
// (remote_memory.h) and multicast groups (multicast_groups.h). Where an interface is null, the rooms above use packets instead.
//
// docs/new-transport.md walks through the smallest transport (transport/loopback), and every transport must pass
// tests/unit/transport_contract_test.cpp. Not thread-safe: all calls under the library's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "transport/packet.h"
#include "transport/sink.h"

namespace starling::transport {

/// A process, identified by this host's segment of its job and its rank.
struct ProcessAddress {
    /// The job's segment on this host, valid as long as any path to a process of the job.
    const job::JobSegment* segment = nullptr;
    uint32_t rank = 0;
    job::JobId job() const { return segment->header().id; }
    bool operator==(const ProcessAddress& other) const { return rank == other.rank && job() == other.job(); }
};

/// Capabilities of a transport besides moving packets, for decisions that need no call and for `starling info`.
enum Capability : uint32_t {
    kRegions = 1,        ///< remote_memory() serves every path; without this bit, only those for which can_register() is true
    kGroups = 2,         ///< groups() is not null
    kConnections = 4,    ///< connector() is not null
    kStreams = 8,        ///< streams() is not null
    kSharesMemory = 16,  ///< peers on this host only: the kernel copies between processes, and their regions are visible
    kRails = 32,         ///< the transport uses several interfaces, which may appear and disappear
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

class Batching;
class MulticastGroups;
class NotifiedWrites;
class FailureDetection;
class RemoteMemory;
class StreamCarrier;
class Transport;
class WaitSource;

/// Reserved space for one packet.
struct PacketSlot {
    std::byte* payload = nullptr;
    packet::Header* header = nullptr;
    Path* path = nullptr;  ///< the path whose commit() sends the packet
    /// Whether the payload lies in memory that is used in rotation: CopyPath::CopyDestination (base/copy.h).
    bool rotates = false;
    /// Bytes by which the payload may begin later: what align_with() may use.
    uint8_t spare = 0;
    /// Whether the receiver need not wake for this packet: a transport may delay it until other packets follow.
    bool quiet = false;
    void* place = nullptr;  ///< state owned by the path

    /// Makes the payload begin at the same offset within a cache line as `source`, which the caller copies there, if the path has room for
    /// that. A long copy takes a tenth longer if its lines are shifted against the source's. Steps of 16 bytes keep the alignment that
    /// CopyPath needs.
    void align_with(const void* source) {
        constexpr uintptr_t kStep = 16, kLine = 64;
        if (spare < kLine - kStep) return;
        payload += (reinterpret_cast<uintptr_t>(source) - reinterpret_cast<uintptr_t>(payload)) % kLine / kStep * kStep;
        spare = 0;
    }
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
    void* user;  ///< value that the sink gets in place of the path

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

    /// Returns the best payload size for data that is sent in fragments anyway.
    virtual uint32_t fragment_limit() const { return payload_limit(); }
    /// Handles a packet of a kind that belongs to the transport, which the peer sent by Sink::send().
    virtual void handle(const Packet& packet) { (void)packet; }
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
    /// Publishes, for processes that ask, that this process can be reached, or has finalized. The port of `state` is not used.
    virtual void announce(job::PortWord state) { (void)state; }

    // Interfaces for further capabilities; null: the transport lacks the capability.
    virtual Connector* connector() { return nullptr; }
    virtual StreamCarrier* streams() { return nullptr; }
    virtual RemoteMemory* remote_memory() { return nullptr; }
    virtual NotifiedWrites* notified_writes() { return nullptr; }
    virtual MulticastGroups* groups() { return nullptr; }
    virtual FailureDetection* failure_detection() { return nullptr; }
    virtual WaitSource* wait_source() { return nullptr; }
    virtual Batching* batching() { return nullptr; }

    // Functions for polling and time.
    /// The urgency of a poll. `busy`: other transports have just delivered something, so system calls may be skipped now and then. `quiet`:
    /// no transport has. `now`: everything that has arrived must be delivered, as a process is about to be declared dead.
    enum class PollUrgency : uint8_t { busy, quiet, now };
    /// Delivers arrivals and advances pending operations. Returns whether anything was delivered or completed, or there is room again.
    virtual bool poll(PollUrgency look) = 0;
    /// Removes half-written packets of dead senders, which hide the packets behind them. Slow. Returns whether there were any.
    virtual bool recover() { return false; }
    /// Returns when poll() must be called even if WaitSource::wait_fd() stays silent; ns of base/clock.h, UINT64_MAX: never. The time may be in the
    /// past.
    virtual uint64_t next_deadline() const { return UINT64_MAX; }
};

}  // namespace starling::transport
