// The endpoint of this process on the IP network. One UDP socket reaches every process of the universe without a handshake (the base path),
// and a session per peer makes it reliable. The first packet creates a session, so peers without traffic cost nothing.
//
// Not thread-safe: all calls under the library's lock. Times are those of base/clock.h (ns).
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "transport/network/crypto/cipher.h"
#include "transport/network/session/session.h"
#include "transport/packet.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// The identity of this process, as its peers know it.
struct EndpointIdentity {
    job::JobId job = 0;
    uint32_t rank = 0;
    uint64_t key = 0;             ///< the key of this job on this host, which every datagram to this process must carry
    job::NetworkSecret secret{};  ///< secret of the job; if set, all datagrams are sealed, and unsealed ones are dropped
};

/// The endpoint's upcalls, made under the library's lock from inside poll() and receive_frame(). All are set unless noted. They may
/// reserve, commit and close on any session, but must not poll.
struct EndpointUpcalls {
    /// Handles a datagram that carries our key and is from a process without a session. Returns the session to use, made with
    /// Endpoint::add, or nullptr: then the datagram is dropped and the sender will repeat it. `key` is the key that datagrams to the sender
    /// must carry, 0 if the datagram does not include it.
    Session* (*unknown)(void* context, job::JobId job, uint32_t rank, uint64_t key);
    /// Reports that the peer is unreachable; failure() returns the reason, one of three. The peer gave no sign of life for
    /// STARLING_IP_TIMEOUT seconds while data was unacknowledged, and Endpoint::confirm_alive was not called. Or it polled its sockets all
    /// that time, but nothing sent to it arrived. Or another incarnation has replaced it. The session is dead; close() it.
    void (*unreachable)(void* user);
    /// Returns the secret of the job of a process that a datagram names. Null: the secret is not known (yet), or the job has no such rank.
    /// The upcall may be null where EndpointIdentity has no secret.
    const job::NetworkSecret* (*secret)(void* context, job::JobId job, uint32_t rank) = nullptr;
    /// Handles a datagram from a verbs port. Returns true if the datagram was addressed to a group and is handled. The upcall may be null.
    bool (*to_group)(void* context, const std::byte* data, uint32_t bytes) = nullptr;
    void* context = nullptr;
};

/// The endpoint's totals, for MPI_T and `starling top`. Datagrams are those on UDP, packets those on all carriers.
struct EndpointCounters {
    uint64_t datagrams_sent = 0, datagrams_received = 0;
    uint64_t bytes_sent = 0, bytes_received = 0;  ///< UDP payload of the datagrams
    uint64_t packets_sent = 0, packets_received = 0;
    uint64_t acks_alone = 0;    ///< datagrams and frames that carried an acknowledgement but no data
    uint64_t repeated = 0;      ///< datagrams that repeated data, wholly or in part
    uint64_t timeouts = 0;      ///< expirations of the retransmission timer
    uint64_t duplicates = 0;    ///< received datagrams without new data
    uint64_t out_of_order = 0;  ///< datagrams received out of order
    uint64_t rejected = 0;      ///< datagrams dropped: wrong key or target, malformed, another version, not authenticated
    uint64_t stale = 0;         ///< datagrams dropped: from or for an earlier incarnation, or a sealed duplicate
    uint64_t unknown = 0;       ///< datagrams dropped or held because link has no session with the sender
    uint64_t busy = 0;          ///< times that the kernel's send buffer was full
    uint64_t lanes = 0;         ///< times that a peer got a connected socket
};

/// A rail's traffic, for MPI_T and `starling top`.
struct RailCounters {
    char name[16] = {};    ///< name of the interface
    uint32_t address = 0;  ///< IPv4 address of the interface, network byte order
    bool usable = false;
    uint64_t bytes_sent = 0, bytes_received = 0;
};

class Endpoint {
  public:
    /// Binds the socket and finds the rails, in constant time and without communication. The endpoint lives until the process ends. Returns
    /// MPI_ERR_OTHER with failure_text() if there is no usable interface or no socket.
    static int open(const EndpointIdentity& self, const EndpointUpcalls& upcalls, Endpoint*& out);

    /// Adds verbs ports: from now on datagrams use them for peers that also have ports and answer on them. May be called before or after
    /// the first packet.
    void adopt(std::unique_ptr<verbs::Ports> ports);
    /// Returns the verbs ports in use; null: there are none.
    verbs::Ports* ports() const;
    /// Returns the index of our port by which the peer is reached over verbs; -1: there is none, or the peer no longer answers on it.
    int verbs_place(const Session& session) const;
    /// Returns the index of our port that both sides' port lists suggest for the peer, whether or not it has answered there; -1: none.
    int likely_verbs_place(const Session& session) const;
    /// Makes wait_fd() also signal arrivals at verbs ports. Call before each sleep. Returns false if something has arrived already.
    bool arm();
    /// Makes the next poll() check the UDP sockets too. Without this call, polls may skip them while verbs ports are in use.
    void poll_udp_next();
    /// Reports to the endpoint that a verbs port has received something that its queues do not report, such as data written by RDMA.
    void ports_brought();

    /// Returns the UDP port of this process, host byte order.
    uint16_t port() const;
    const EndpointIdentity& identity() const;
    /// Returns an epoll descriptor that is readable when poll() would find something. Other code may add its sockets to it, with a bit of
    /// ready_sockets() as their data.
    int wait_fd() const;

    /// Returns the session with a peer, created if there is none; an existing one gets the new `user`. `key` is the key that datagrams to
    /// the peer must carry (0: not known yet), `user` goes to the upcalls. `receiver` gets each packet exactly once, in the order in which
    /// the peer committed it. The address may be unknown: packets then wait in the session's
    /// buffer. Returns null if datagrams must be sealed and the peer's job has no secret.
    Session* add(job::JobId job, uint32_t rank, uint64_t key, SessionReceiver receiver, void* user);
    /// Returns the session with a peer, nullptr if there is none.
    Session* find(job::JobId job, uint32_t rank) const;
    /// Sets the peer's addresses, at most kMaxAddresses IPv4 addresses of its host (network byte order), and port (host byte order). Call
    /// again when they change. A valid datagram from the peer also provides its address.
    void set_addresses(Session& session, const uint32_t* addresses, size_t count, uint16_t port);
    void set_key(Session& session, uint64_t key);
    /// Returns whether anything can be sent to the peer: its address and key are known, from set_addresses() or from a datagram.
    bool reachable(const Session& session) const;

    /// Reserves space for the header and `bytes` of payload (at most kMaxPayload) of the next packet, in the memory where the packet stays
    /// until the peer has acknowledged it. Returns false if the session's buffer (STARLING_IP_WINDOW) is full; poll() returns true when it
    /// has room again. Fill all of the header except stamp and bytes, then commit. Reserving again without a commit has no cost. One
    /// reservation at a time.
    bool reserve(Session& session, uint32_t bytes, std::byte*& payload, packet::Header*& header);
    /// Commits the reserved packet, with at most as many payload bytes as reserved. The packet is sent at once if the window allows and no
    /// batch is open. Packets that wait are sent together, as many to a datagram as fit. Returns false if the packet waits for room, which
    /// only polling makes.
    bool commit(Session& session, uint32_t bytes);
    /// Between begin_batch() and end_batch() nothing is sent, so that small packets share datagrams. Batches nest.
    void begin_batch();
    void end_batch();
    /// Returns the longest payload that is sent whole, in one datagram or, while a carrier is attached, in one frame. Longer ones, up to
    /// kMaxPayload, are split, and reassembled with an additional copy.
    uint32_t payload_limit(const Session& session) const;

    /// Receives, delivers, acknowledges, runs timers and sends. `now` is now_ns(). Returns whether a packet was delivered or room was made.
    bool poll(uint64_t now);
    /// Asks the kernel which sockets are readable, and returns their bits. The next poll() then reads each of those and no other.
    uint32_t ready_sockets();
    /// Bits in ready_sockets() of the group sockets and of the connections.
    static constexpr uint32_t kGroups = 1u << 31, kWires = 1u << 30;
    static constexpr uint32_t kOwn = kWires - 1;  ///< bits in ready_sockets() of poll()'s own sockets
    /// Returns when poll() must be called even if wait_fd() stays silent; ns, UINT64_MAX: never. The time may be in the past.
    uint64_t next_deadline() const;
    /// Sends all delayed acknowledgements. Call before a sleep without a deadline, before the process computes for long, and before it
    /// ends.
    void flush_acks();
    /// Sends all delayed acknowledgements, and asks the peers for the acknowledgements that they delay.
    void request_acks();

    /// Returns whether the peer has acknowledged everything committed.
    bool idle(const Session& session) const;
    /// Returns the time (ns) since which data has waited for an acknowledgement without any sign of life from the peer; 0: none waits.
    uint64_t stalled_since(const Session& session) const;
    /// Reports the daemon's statement that the peer is alive, which restarts the peer's timeout: it may be computing. `looks`: the peer has
    /// polled its sockets, so it should have acknowledged something.
    void confirm_alive(Session& session, bool looks);
    /// Returns why the session failed; SessionFailure::none if it did not.
    SessionFailure failure(const Session& session) const;
    /// Closes the session and frees its contents. No upcall for it follows, and its pointer becomes invalid when the current upcall
    /// returns. Later datagrams of this incarnation of the peer are dropped.
    void close(Session& session);
    /// Asks the peer for a sign of life by a datagram. Session::answered_at() changes when an answer arrives.
    void request_ports(Session& session);
    /// Frees all closed sessions with processes of this job. Later datagrams of these processes count as those of an unknown sender. Must
    /// not be called within poll() or a batch.
    void forget(job::JobId job);
    /// Returns the smoothed round-trip time, ns; 0: not measured yet.
    uint64_t round_trip(const Session& session) const;
    void* user(const Session& session) const;

    // Functions for connections (TCP and RC).

    /// Returns the cipher that seals connections; null: nothing is sealed.
    const Cipher* cipher() const;
    /// Returns the key that only this process and the session's peer share.
    SealKey pair_with(const Session& session) const;

    /// Attaches a carrier: from now on the session sends only through its carriers, using the first that is not busy. Returns false if it
    /// has kMaxCarriers already.
    bool attach(Session& session, Carrier& carrier);
    /// Detaches a carrier that has failed or is about to close. Unacknowledged data that the carrier had taken is sent again another way.
    void detach(Session& session, Carrier& carrier);
    /// Reports that the carrier, which was busy, takes frames again.
    void writable(Session& session, Carrier& carrier);
    /// Handles a frame from one of the session's carriers. Returns false if it is malformed: close the connection. An upcall may have
    /// closed the session meanwhile, so look it up again afterwards.
    bool receive_frame(Session& session, Carrier& carrier, const std::byte* frame, size_t bytes, uint64_t now);
    /// Writes the addresses of the rails, to which peers may connect (IPv4, network byte order), at most `most`, and returns their number.
    /// The addresses change when interfaces appear and disappear.
    size_t addresses(uint32_t* out, size_t most) const;
    /// Finds the local address to use towards a remote one; `local` 0: the kernel should choose. Returns false if no rail is usable now.
    bool route(uint32_t remote, uint32_t& local) const;
    /// Returns a counter that grows whenever a rail appears, disappears or changes.
    uint32_t rails_version() const;

    EndpointCounters counters() const;
    /// Writes the counters of at most `most` rails; returns the number of rails.
    size_t rail_counters(RailCounters* out, size_t most) const;

  private:
    struct EndpointState;
    explicit Endpoint(EndpointState* state) : state_(state) {}
    EndpointState* state_;
};

}  // namespace starling::network
