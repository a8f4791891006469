// A peer: another process (or this one) that we have met, and the paths to it.
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
using transport::Slot;

/// A small packet that found no room.
struct Control {
    static constexpr uint32_t kMost = 48;
    static_assert(kMost >= transport::Connector::kOffer + sizeof(Stamp));
    packet::Kind kind;
    uint32_t bytes;
    std::byte payload[kMost];
};

/// Comes into being at the first message in either direction; lives as long as its job is known here.
struct Peer {
    Peer(Job& job, uint32_t rank);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    Job& job;
    const uint32_t rank;

    transport::Path* base = nullptr;  ///< always there, and closed once the peer is dead; `near` if the peer is on this host
    shm::Path near;                   ///< here, so that a short message is put on its ring without a call

    bool can(transport::Capability what) const { return base->by.traits.can & what; }

    uint64_t asked_at = 0;           ///< ns; when the daemon was last asked whether it lives
    uint32_t looks = 0;              ///< of its cell, as the daemon said last; 0: not known
    uint64_t bytes_since_check = 0;  ///< of messages that are streamed; decides with sent_since_check

    State state = State::closed;
    PeerConnectionState turns;
    bool open_deferred = false;
    std::byte deferred_offer[transport::Connector::kOffer] = {};
    bool dead = false;
    char* why_dead = nullptr;  ///< the sentence for those who ask for it, if it died while its job went on

    uint32_t next_send = kCounterStart;               ///< sequence number of the next message to them
    uint32_t open_offers = 0;                         ///< long messages to them that they have not fetched yet
    uint32_t offers_from_far = 0;                     ///< those offered while copies to them took long
    bool expects = false;                             ///< a receive was waiting for the last long message to them
    uint32_t ahead_serial = 0, ahead_generation = 0;  ///< what their pieces belong to that come unasked; generation 0: nothing
    uint32_t next_receive = kCounterStart;            ///< of the next message from them to match

    uint32_t sent_since_check = 0;                  ///< messages; decides on opening and closing
    uint32_t value = 0;                             ///< messages both ways, halving in time (link/manager)
    uint32_t messages_valued = 2 * kCounterStart;   ///< that it was last reckoned with: next_send + next_receive
    uint32_t messages_changed = 2 * kCounterStart;  ///< the same when its connection was opened or closed last
    uint32_t received_before = kCounterStart;       ///< next_receive when the phase began that is going on (plan/phase_traffic)
    uint64_t valued_at = 0;                         ///< packets that this process had sent to anybody
    uint32_t backoff = 0;                           ///< windows to wait after a refusal
    bool gains = true;     ///< such messages as go to it are faster on a connection (plan/phase_traffic)
    uint32_t planned = 0;  ///< its priority in the phase that is going on; 0: it is in no plan (link/connection_quota.h)

    profile::Traffic* const traffic;  ///< to them in this phase; null: nothing is counted

    /// Things that found no room, oldest first; controls go before sends.
    std::deque<Control> controls;
    ListHook pending_hook;                    ///< in the list of peers with something pending
    std::deque<message::SendRequest*> sends;  ///< eager or envelopes not yet out, and streams

    CopyPath copies;  ///< into their region

    /// Messages that arrived ahead of their turn (over another path); owned by the message room.
    void* early = nullptr;
};

/// The longest payload that one packet to this peer can take now.
inline uint32_t payload_limit(const Peer& peer) {
    if (peer.near.has_ring()) [[likely]]
        return shm::kRingPayload;
    return peer.base->payload_limit();
}

/// Finds room for a packet of `bytes` (at most payload_limit). False if there is none now. Fill the header (kind, and what a packet of that
/// kind says there) and payload, then commit: a slot that was reserved must be committed.
inline bool reserve(Peer& peer, uint32_t bytes, Slot& slot) {
    if (!peer.near.has_ring()) [[unlikely]]
        return peer.base->reserve(bytes, slot);
    return peer.near.reserve_in_ring(bytes, slot);
}

inline void commit(Peer& peer, Slot& slot, uint32_t bytes) {
    if (slot.path) [[unlikely]]
        return slot.path->commit(slot, bytes);
    peer.near.commit_in_ring(bytes);
}

/// Sends a small packet now, or as soon as there is room.
void send_control(Peer& peer, packet::Kind kind, const void* payload, uint32_t bytes);

/// Messages before which nothing is considered: the least STARLING_DIRECT_THRESHOLD (base/variables.def).
inline constexpr uint32_t kConsiderAfter = 4;
/// Counts one message, which goes out now or is queued: for the policy, which asks for a connection when it pays, and for the
/// profile. Inline part of every send.
void consider_opening(Peer& peer);
inline void count_message(Peer& peer, profile::Size size, uint64_t bytes) {
    if (peer.traffic) [[unlikely]] {
        const auto way = peer.state == State::connected ? profile::Way::connection : profile::Way::base;
        profile::count(*peer.traffic, size, way, bytes);
    }
    if (++peer.sent_since_check >= kConsiderAfter && peer.state == State::closed) consider_opening(peer);
}

/// Counts an access of its memory that it carries out, for the profile.
inline void count_access(Peer& peer, profile::Access access, uint64_t bytes) {
    if (!peer.traffic) [[likely]]
        return;
    profile::count(*peer.traffic, access, peer.state == State::connected ? profile::Way::connection : profile::Way::base,
                   bytes);
}

/// Counts a long message for the same, if it is one that a connection would stream; or an access of many packets. Short accesses are no
/// faster on a connection.
inline void count_bytes(Peer& peer, uint64_t bytes) {
    if (!peer.can(transport::kStreams)) return;
    peer.bytes_since_check += bytes;
    if (peer.state == State::closed) consider_opening(peer);
}
/// Counts a short access, where a connection carries out such by itself.
void count_short_access(Peer& peer);
/// Asks for a connection whatever the traffic, if there is a place for it (a hint).
void request_connection(Peer& peer);

/// Closes a connection (policy, tests). Messages go on over the base path.
void request_close(Peer& peer);

/// Puts the peer on the list of those with something pending; flush tries again at each poll.
void mark_pending(Peer& peer);

/// Whether any peer has something pending.
bool anything_pending();
/// Whether one of them waits for room that nobody will wake us for: who makes it in this host's memory does not ring.
bool anything_waits_for_room_here();

/// Visits the peers with something pending; the visitor may take it away.
void each_pending(void (*visit)(Peer& peer));

/// Upcalls of the message room, set once before the first poll.
struct Upcalls {
    void (*deliver)(Peer& peer, Packet packet);  ///< kinds eager … piece
    bool (*flush)(Peer& peer);                   ///< try to send what is pending; false if something is left
    void (*job_failed)(Job& job);                ///< after everything it had sent was delivered
    void (*peer_failed)(Peer& peer);             ///< while its job goes on; failure_text() says what happened
    bool (*owes)(const Job& job);                ///< whether messages of a job that is gone may still be received
    void (*forget_peer)(Peer& peer);             ///< before a peer of a job that is gone is destroyed

    // What streams bring: as transport::Sink.
    std::byte* (*target)(Peer& peer, const transport::StreamFragment& piece, uint64_t done, uint64_t bytes);
    void (*unpack)(Peer& peer, const transport::StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes);
    void (*piece)(Peer& peer, const transport::StreamFragment& piece);
};
extern Upcalls upcalls;

/// Has it called after processes have failed, or all of a job, and what they had sent was delivered: whoever else than messages waits
/// for them finds them ended (has_ended). By one, said when he begins.
void watch_failures(void (*watcher)());
void tell_of_failures();

/// Has packets of a kind that is no message's taken by somebody: by one for each kind, said when he begins. What nobody takes is dropped.
using PacketHandler = void (*)(Peer& peer, const Packet& packet);
void register_handler(packet::Kind kind, PacketHandler taker);
bool takes_packets(packet::Kind kind);

/// dispatch() for all that is not a message.
void dispatch_rare(Peer& peer, const Packet& packet);

/// Takes a packet in, whatever path has brought it.
inline void dispatch(Peer& peer, Packet packet) {
    // A process may outlive its job's failure for a moment. Everything it had to do with us was ended then.
    if (peer.dead) [[unlikely]]
        return;
    if (packet::is_for_messages(packet.header.kind)) [[likely]]
        return upcalls.deliver(peer, packet);
    dispatch_rare(peer, packet);
}

/// Begins to receive: once, after adopt_own_job(). Opens the network if the universe has other hosts: MPI_ERR_OTHER with
/// failure_text() if that fails.
int start();

/// Takes what has come on rings. Returns whether anything had.
bool poll_rings();
/// Polls the transports and pending sends once; `busy`: something has come already. Returns whether anything
/// happened.
bool poll_but_rings(bool busy);
/// Both.
inline bool poll() {
    const bool any = poll_rings();
    return poll_but_rings(any) || any;
}
/// Whether poll_rings() would find something; and whether it ever may.
bool rings_hold_something();
bool has_rings();

/// Looks whether other jobs' launchers and jobs still live; reports those that don't. Gives whether anything was
/// delivered or reported. For slow paths.
bool check_liveness();
/// Whether somebody has died, or given this process up, since check_liveness() looked: the launcher has written it where it takes a
/// load to see it.
bool deaths_are_news();

}  // namespace starling::link
