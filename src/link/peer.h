// A peer: another process (or this one) with which this process communicates, and the paths to it.
#pragma once

#include <cstdint>
#include <deque>

#include "base/copy.h"
#include "base/counter_start.h"
#include "base/list.h"
#include "link/connection.h"
#include "link/job.h"
#include "profile/traffic.h"
#include "transport/packet.h"
#include "transport/shm/path.h"
#include "transport/transport.h"

namespace starling::message {
struct SendRequest;
}

namespace starling::link {

using transport::Packet;
using transport::PacketSlot;

/// A small packet that found no room and waits to be sent.
struct PendingControl {
    static constexpr uint32_t kMost = 48;
    static_assert(kMost >= transport::Connector::kOffer + sizeof(Stamp));
    packet::PacketKind kind;
    uint32_t bytes;
    std::byte payload[kMost];
};

/// One other process, with its paths, connection state and sequence numbers. Created at the first message in either direction; exists as
/// long as its job is known here.
struct Peer {
    Peer(Job& job, uint32_t rank);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    Job& job;
    const uint32_t rank;

    /// Base path, which exists from the start and is closed once the peer is dead. It is `shm_path` if the peer is on this host.
    transport::Path* base = nullptr;
    shm::ShmPath shm_path;  ///< path within the host; a member, so that a short message is written to its ring without a call

    bool supports(transport::Capability what) const { return base->by.traits.capabilities & what; }

    uint64_t queried_at = 0;         ///< when the daemon was last asked whether the peer lives, ns
    uint32_t polls = 0;              ///< RankCell::polls of the peer in the daemon's last reply; 0: not known
    uint64_t bytes_since_check = 0;  ///< bytes of streamed messages since the last check whether a connection is worthwhile

    ConnectionState state = ConnectionState::closed;
    PeerConnectionState turns;
    bool open_deferred = false;
    std::byte deferred_offer[transport::Connector::kOffer] = {};
    bool dead = false;
    bool failed = false;       ///< whether the peer died, or became unreachable, while its job continued
    char* why_dead = nullptr;  ///< the error text for later callers, if the peer died while its job continued

    uint64_t bytes_sent = 0;             ///< bytes of all messages to the peer (plan/run_report)
    uint32_t next_send = kCounterStart;  ///< sequence number of the next message to the peer
    uint32_t open_offers = 0;            ///< number of rendezvous messages to the peer without a FIN so far
    /// Whether a receive was waiting for the last rendezvous message to the peer.
    bool expects = false;
    /// Id and generation of the receive for fragments that the peer sends before our CTS; generation 0: none.
    uint32_t ahead_serial = 0, ahead_generation = 0;
    uint32_t next_receive = kCounterStart;  ///< sequence number of the next message from the peer to match

    /// Number of messages sent since the last check whether a connection is worthwhile.
    uint32_t sent_since_check = 0;
    /// Number of messages in both directions, halved periodically (link/manager).
    uint32_t value = 0;
    uint32_t messages_valued = 2 * kCounterStart;   ///< next_send + next_receive when `value` was last updated
    uint32_t messages_changed = 2 * kCounterStart;  ///< next_send + next_receive when the connection was last opened or closed
    uint32_t received_before = kCounterStart;       ///< next_receive when the current phase began (plan/phase_traffic)
    uint64_t valued_at = 0;  ///< number of packets that this process had sent to all peers when `value` was last updated
    uint32_t backoff = 0;    ///< number of occasions for a new request to skip after a refusal
    bool gains = true;       ///< whether messages of the kind sent to this peer are faster on a connection (plan/phase_traffic)
    uint32_t planned = 0;    ///< priority in the current phase's plan; 0: not in the plan (link/connection_quota.h)

    profile::Traffic* const traffic;  ///< traffic to the peer in this phase; null: nothing is counted

    /// Packets that found no room, oldest first; `controls` are sent before `sends`.
    std::deque<PendingControl> controls;
    ListHook pending_hook;                    ///< hook of the list of peers with pending sends
    std::deque<message::SendRequest*> sends;  ///< eager messages and envelopes not sent yet, and streams

    CopyPath copies;  ///< chooses the kind of stores for copies into the peer's memory

    /// Messages that arrived out of order (over another path); owned by src/message.
    void* out_of_order = nullptr;
};

/// Returns the longest payload that one packet to this peer can hold now.
inline uint32_t payload_limit(const Peer& peer) {
    if (peer.shm_path.has_ring()) [[likely]]
        return shm::kRingPayload;
    return peer.base->payload_limit();
}

/// Reserves room for a packet of `bytes` (at most payload_limit). Returns false if there is none now. The caller fills the header (kind,
/// and the fields of that kind) and the payload, then commits: a reserved slot must be committed.
inline bool reserve(Peer& peer, uint32_t bytes, PacketSlot& slot) {
    if (!peer.shm_path.has_ring()) [[unlikely]]
        return peer.base->reserve(bytes, slot);
    return peer.shm_path.reserve_in_ring(bytes, slot);
}

inline void commit(Peer& peer, PacketSlot& slot, uint32_t bytes) {
    if (slot.path) [[unlikely]]
        return slot.path->commit(slot, bytes);
    peer.shm_path.commit_in_ring(bytes, slot.quiet);
}

/// Sends a small packet now, or as soon as there is room.
void send_control(Peer& peer, packet::PacketKind kind, const void* payload, uint32_t bytes);

/// Number of messages to a peer before which no connection is considered: the minimum of STARLING_DIRECT_THRESHOLD (base/variables.def).
inline constexpr uint32_t kConsiderAfter = 4;
/// Requests a connection to the peer if its recent traffic justifies one.
void consider_opening(Peer& peer);
/// Counts one message, sent now or queued: for the policy, which requests a connection when it pays, and for the profile. This is the
/// inline part of every send.
inline void count_message(Peer& peer, profile::Size size, uint64_t bytes) {
    peer.bytes_sent += bytes;
    if (peer.traffic) [[unlikely]] {
        const auto way = peer.state == ConnectionState::connected ? profile::PathKind::connection : profile::PathKind::base;
        profile::count(*peer.traffic, size, way, bytes);
    }
    if (++peer.sent_since_check >= kConsiderAfter && peer.state == ConnectionState::closed) consider_opening(peer);
}

/// Counts an access to the peer's memory, for the profile. The peer carries out the access.
inline void count_access(Peer& peer, profile::AccessKind access, uint64_t bytes) {
    if (!peer.traffic) [[likely]]
        return;
    profile::count(*peer.traffic, access,
                   peer.state == ConnectionState::connected ? profile::PathKind::connection : profile::PathKind::base, bytes);
}

/// Counts the bytes of a long message that a connection would stream, or of an access of many packets, and requests a connection when these
/// bytes justify it. Short accesses are counted by count_short_access().
inline void count_bytes(Peer& peer, uint64_t bytes) {
    if (!peer.supports(transport::kStreams)) return;
    peer.bytes_since_check += bytes;
    if (peer.state == ConnectionState::closed) consider_opening(peer);
}
/// Counts a short access, if a connection to the peer would speed up short accesses.
void count_short_access(Peer& peer);
/// Requests a connection regardless of traffic, if the quota has room for it (a hint).
void request_connection(Peer& peer);

/// Closes a connection (policy, tests). Messages continue on the base path.
void request_close(Peer& peer);

/// Adds the peer to the list of those with pending sends, which every poll tries to flush.
void mark_pending(Peer& peer);

/// Returns whether any peer has pending sends.
bool anything_pending();
/// Returns whether a pending send waits for room of which no doorbell will notify us: a receiver on this host frees room without ringing.
bool waits_for_local_room();

/// Visits the peers with pending sends; the visitor may remove what is pending.
void each_pending(void (*visit)(Peer& peer));

/// Upcalls to the code in src/message, set once before the first poll.
struct MessageUpcalls {
    void (*deliver)(Peer& peer, Packet packet);  ///< delivers a packet of one of the kinds from `eager` to `fragment`
    bool (*flush)(Peer& peer);                   ///< tries to send the peer's pending packets; returns false if some remain
    void (*job_failed)(Job& job);                ///< called after everything that the failed job had sent was delivered
    void (*peer_failed)(Peer& peer);  ///< called if a peer has failed but its job continues; failure_text() has the reason
    bool (*owes)(const Job& job);     ///< returns whether messages of a job that has ended may still be received
    void (*forget_peer)(Peer& peer);  ///< called before a peer of a job that has ended is destroyed

    // Upcalls for data from streams, as in transport::Sink.
    std::byte* (*target)(Peer& peer, const transport::StreamFragment& fragment, uint64_t done, uint64_t bytes);
    void (*unpack)(Peer& peer, const transport::StreamFragment& fragment, uint64_t done, const std::byte* data, uint64_t bytes);
    void (*fragment)(Peer& peer, const transport::StreamFragment& fragment);
};
extern MessageUpcalls upcalls;

/// Sets the one function that is called after processes or a whole job have failed and all their data was delivered. It is for waits for
/// other things than messages; these waits then find the processes ended (has_ended()).
void watch_failures(void (*watcher)());
void report_failures();

/// Sets the handler for packets of a kind that is not a message: one per kind, set at start. Packets without a handler are dropped.
using PacketHandler = void (*)(Peer& peer, const Packet& packet);
void register_handler(packet::PacketKind kind, PacketHandler taker);
bool accepts_packets(packet::PacketKind kind);

/// Passes a packet that is not a message to the handler of its kind. For dispatch() only.
void dispatch_rare(Peer& peer, const Packet& packet);

/// Processes a packet that arrived on any path.
inline void dispatch(Peer& peer, Packet packet) {
    // Drop the packet: a process may outlive its job's failure for a moment, but all communication with it was ended then.
    if (peer.dead) [[unlikely]]
        return;
    if (packet::is_for_messages(packet.header.kind)) [[likely]]
        return upcalls.deliver(peer, packet);
    dispatch_rare(peer, packet);
}

/// Starts to receive packets. Called once, after adopt_own_job(). Opens the network if the universe has other hosts. Returns MPI_ERR_OTHER
/// with failure_text() if that fails.
int start();

/// Processes packets that have arrived on rings. Returns whether there were any.
bool poll_rings();
/// Polls the transports and pending sends once. `busy`: whether the caller has already found a packet. Returns whether anything happened.
bool poll_but_rings(bool busy);
/// Polls rings and everything else.
inline bool poll() {
    const bool any = poll_rings();
    return poll_but_rings(any) || any;
}
/// The first returns whether poll_rings() would find a packet now, the second whether any peer has a ring to this process.
bool rings_hold_something();
bool has_rings();

/// Checks whether other jobs and their launchers still live, and reports those that do not. Returns whether anything was delivered or
/// reported. For slow paths.
bool check_liveness();
/// Returns whether a process has died, or declared this one unreachable, since the last check_liveness(). The launcher publishes both in
/// memory, so this costs a few loads.
bool deaths_are_news();

}  // namespace starling::link
