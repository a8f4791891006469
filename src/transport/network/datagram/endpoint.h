// The endpoint: this process on the IP network. One UDP socket that reaches every process of the universe without
// setting up anything (the base path), and a session per peer that makes it reliable. Sessions come into being
// with the first packet; what is never talked to costs nothing.
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

/// This process, as its peers know it.
struct Identity {
    job::JobId job = 0;
    uint32_t rank = 0;
    uint64_t key = 0;             ///< what every datagram to this process must show (the key of its job on its host)
    job::NetworkSecret secret{};  ///< of its job; if there is one, everything that is sent is sealed, and nothing else is taken
};

/// What the endpoint calls, under the library's lock, from inside poll() and receive_frame(). All are set. They may
/// reserve, commit and close on any session, but must not poll.
struct Upcalls {
    /// A packet, in the order in which the peer committed it, once. `user` is the session's. Valid during the call;
    /// `payload` is aligned to 8 and header.stamp means nothing.
    void (*deliver)(void* user, const packet::Header& header, const std::byte* payload);
    /// A datagram with our key from a process that has no session yet. Gives the session to use (made with
    /// Endpoint::add, and `key` is what the sender says datagrams to it must show, 0 if it does not), or nullptr: the
    /// datagram is dropped and the sender will repeat it.
    Session* (*unknown)(void* context, job::JobId job, uint32_t rank, uint64_t key);
    /// The peer has neither been heard of nor vouched for (Endpoint::confirm_alive) for STARLING_IP_TIMEOUT seconds while it
    /// had something to acknowledge; or it looks at its sockets all that time but nothing sent to it arrives; or it is another
    /// incarnation than the one that was talked to: failure() says which. The session takes and delivers nothing any
    /// more; close() it.
    void (*unreachable)(void* user);
    /// The secret of the job that a process is of, whoever says so. Null: it is not known (yet), or the job has no such rank. May be left
    /// out where Identity has no secret.
    const job::NetworkSecret* (*secret)(void* context, job::JobId job, uint32_t rank) = nullptr;
    /// What a port has brought. True: it was to a group, and is done with. May be left out.
    bool (*to_group)(void* context, const std::byte* data, uint32_t bytes) = nullptr;
    void* context = nullptr;
};

/// What the endpoint did so far, for MPI_T and `starling top`. Datagrams count on UDP, packets on all carriers.
struct Counters {
    uint64_t datagrams_sent = 0, datagrams_received = 0;
    uint64_t bytes_sent = 0, bytes_received = 0;  ///< of datagrams, UDP payload
    uint64_t packets_sent = 0, packets_received = 0;
    uint64_t acks_alone = 0;    ///< datagrams and frames sent for nothing but an acknowledgement
    uint64_t repeated = 0;      ///< datagrams sent again, wholly or in part
    uint64_t timeouts = 0;      ///< of the retransmission timer
    uint64_t duplicates = 0;    ///< datagrams received that held nothing new
    uint64_t out_of_order = 0;  ///< datagrams received before their turn
    uint64_t strangers = 0;     ///< dropped: wrong key or target, malformed, another version, not opened by the seal's key
    uint64_t stale = 0;         ///< dropped: from or for an earlier incarnation of a process, or sealed and come before
    uint64_t unknown = 0;       ///< dropped: nobody wanted a session with the sender
    uint64_t busy = 0;          ///< the kernel's send buffer was full
    uint64_t lanes = 0;         ///< times that a peer was given a socket of its own
};

/// Bytes per rail, for the same.
struct RailCounters {
    char name[16] = {};    ///< of the interface
    uint32_t address = 0;  ///< IPv4, network byte order
    bool usable = false;
    uint64_t bytes_sent = 0, bytes_received = 0;
};

class Endpoint {
  public:
    /// Binds the socket and looks for the rails: constant time, talks to no one. The endpoint lives until the process
    /// ends. MPI_ERR_OTHER with failure_text() if there is no usable interface or no socket to be had.
    static int open(const Identity& self, const Upcalls& upcalls, Endpoint*& out);

    /// From now on datagrams to who has ports, too, and answers there, go by these. Before anything is sent, or later.
    void adopt(std::unique_ptr<verbs::Ports> ports);
    /// Null: there are none.
    verbs::Ports* ports() const;
    /// The place of our port by which the peer is reached over verbs; -1: it is not, or has not answered there (of late).
    int verbs_place(const Session& session) const;
    /// The same whether or not it has answered, as what both have told of their ports has it.
    int likely_verbs_place(const Session& session) const;
    /// Has wait_fd() tell of what comes by ports, which it else does not. False: something has come. Before each sleep.
    bool arm();
    /// The next poll() leaves nothing out.
    void look_everywhere();
    /// Something has come by a port that its queues did not tell of.
    void ports_brought();

    /// UDP port of this process, host byte order.
    uint16_t port() const;
    const Identity& identity() const;
    /// An epoll descriptor that is readable when poll() would find something. Others may add their sockets, with a bit of what_came().
    int wait_fd() const;

    /// Makes the session with a peer. `key` is what datagrams to it must show (0: not known yet), `user` goes to the
    /// upcalls. Its address need not be known: packets wait in the session, which takes as many as its buffer holds.
    /// A session there already is given back, with `user` changed. Null if what is sent is to be sealed and the peer's job has no secret.
    Session* add(job::JobId job, uint32_t rank, uint64_t key, void* user);
    /// The session with a peer, nullptr if there is none.
    Session* find(job::JobId job, uint32_t rank) const;
    /// Where the peer is: its host's IPv4 addresses (network byte order), at most kMaxAddresses are used, and its port
    /// (host byte order). Again when learnt anew. A valid datagram from the peer teaches its address too.
    void set_addresses(Session& session, const uint32_t* addresses, size_t count, uint16_t port);
    void set_key(Session& session, uint64_t key);
    /// Whether anything can be sent: address and key are known, from set_addresses() or from a datagram.
    bool reachable(const Session& session) const;

    /// A place for the header and `bytes` of payload (at most kMaxPayload) of the next packet, in the memory that is
    /// kept until the peer has acknowledged it. False if the session's buffer (STARLING_IP_WINDOW) is full: poll() says
    /// true when some of it has been acknowledged. Fill all of the header but stamp and bytes, then commit;
    /// reserving again without a commit is free. One reservation at a time.
    bool reserve(Session& session, uint32_t bytes, std::byte*& payload, packet::Header*& header);
    /// Hands over the reserved packet, with at most as many bytes as reserved. It is sent at once if the window allows
    /// and no batch is open; packets that wait are sent together, as many to a datagram as it holds.
    /// False: it waits for room, which polls alone make.
    bool commit(Session& session, uint32_t bytes);
    /// Between these nothing is sent, so that small packets share datagrams. They nest.
    void begin_batch();
    void end_batch();
    /// The longest payload that goes in one piece: of one datagram, or of one frame while a carrier is attached. Longer
    /// ones, up to kMaxPayload, are cut and put together again with one copy more.
    uint32_t payload_limit(const Session& session) const;

    /// Receives, delivers, acknowledges, runs timers and sends what may be sent. `now` is now_ns(). Whether a packet was
    /// delivered or room was made.
    bool poll(uint64_t now);
    /// Asks the kernel which sockets have something, so that the next poll() looks at each of those, and at no other.
    uint32_t what_came();
    static constexpr uint32_t kGroups = 1u << 31, kWires = 1u << 30;  ///< the others' bits
    static constexpr uint32_t kOwn = kWires - 1;                      ///< any of these: poll() has something to do
    /// When poll() must be called though wait_fd() stays silent; ns, UINT64_MAX: never. May be in the past.
    uint64_t next_deadline() const;
    /// Sends the acknowledgements that are being held back in the hope of company: before a sleep without a deadline,
    /// before the process computes for long, before it ends.
    void flush_acks();
    /// That, and asks for those that peers were allowed to hold back.
    void request_acks();

    /// Everything committed has been acknowledged.
    bool idle(const Session& session) const;
    /// 0, or since when something waits for an acknowledgement without any sign of life from the peer (ns).
    uint64_t stalled_since(const Session& session) const;
    /// The daemon says the peer lives: its time starts anew. It may compute; if it `looks` at its sockets instead, it should
    /// have acknowledged something.
    void confirm_alive(Session& session, bool looks);
    /// Why the session was given up; Failure::none if it was not.
    Failure failure(const Session& session) const;
    /// Forgets the session and what it holds; its user is not called again, its pointer is dead after the upcall
    /// that runs. Datagrams of this incarnation of the peer are dropped from then on.
    void close(Session& session);
    /// Asks the peer for a sign of life by a datagram: Session::answered_at() tells when one came.
    void ask(Session& session);
    /// Forgets all closed sessions with processes of this job: a datagram of theirs that is still under way comes from
    /// somebody unknown. Not within poll() or a batch.
    void forget(job::JobId job);
    /// Smoothed round-trip time, ns; 0: not measured yet.
    uint64_t round_trip(const Session& session) const;
    void* user(const Session& session) const;

    // For connections (tcp).

    /// What seals them; null: nothing is sealed.
    const Cipher* cipher() const;
    /// What this process and the session's peer alone have.
    SealKey pair_with(const Session& session) const;

    /// From now on the session sends through its carriers only, the first that is not busy. False if it has kMaxCarriers.
    bool attach(Session& session, Carrier& carrier);
    /// The carrier is gone or about to go: what it had taken and is not acknowledged is sent again another way.
    void detach(Session& session, Carrier& carrier);
    /// The carrier, which was busy, takes frames again.
    void writable(Session& session, Carrier& carrier);
    /// A frame has come over one of the session's carriers. False if it is malformed: close the connection. The session
    /// may have been closed by an upcall of the call: look it up again.
    bool receive_frame(Session& session, Carrier& carrier, const std::byte* frame, size_t bytes, uint64_t now);
    /// The rails: this process's addresses that peers may connect to (IPv4, network byte order). Changes as interfaces
    /// come and go. Gives how many were written, at most `most`.
    size_t addresses(uint32_t* out, size_t most) const;
    /// The local address to use towards a remote one, 0 if the kernel should choose; false if no rail reaches it now.
    bool route(uint32_t remote, uint32_t& local) const;
    /// Counts up whenever a rail appears, disappears, or is found dead or alive.
    uint32_t rails_version() const;

    Counters counters() const;
    /// Writes at most `most`, gives how many rails there are.
    size_t rail_counters(RailCounters* out, size_t most) const;

  private:
    struct State;
    explicit Endpoint(State* state) : state_(state) {}
    State* state_;
};

}  // namespace starling::network
