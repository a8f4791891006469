// A peer: another process (or this one) that we have met, and the paths to it.
#pragma once

#include <cstdint>
#include <deque>

#include "base/counters.h"
#include "base/list.h"
#include "link/connection.h"
#include "link/job.h"
#include "transport/shm/region.h"

namespace starling::message {
struct SendRequest;
}

namespace starling::link {

/// A small packet that found no room; payload at most shm::kInlineBytes.
struct Control {
    shm::Kind kind;
    uint32_t bytes;
    std::byte payload[shm::kInlineBytes];
};

/// Comes into being at the first message in either direction; lives until the process ends.
struct Peer {
    Peer(Job& job, uint32_t rank, shm::Region region);

    Job& job;
    const uint32_t rank;
    shm::Region region;  ///< of the peer: its doorbell, inbox, rings

    shm::RingWriter out;  ///< set while we may send on a ring of theirs
    shm::RingReader in;   ///< set while they may send on a ring of ours
    uint32_t in_slot = 0;
    State state = State::closed;
    bool close_pending = false;  ///< the ring waits for room for its close; send on the base path meanwhile
    bool open_deferred = false;
    uint32_t deferred_slot = 0;
    bool dead = false;

    uint32_t next_send = 0;     ///< sequence number of the next message to them
    uint32_t next_receive = 0;  ///< of the next message from them to match

    uint32_t sent_since_check = 0;  ///< messages; decides on opening and closing
    uint32_t value = 0;             ///< messages per window, decaying
    uint32_t backoff = 0;           ///< windows to wait after a refusal

    /// Things that found no room, oldest first; controls go before sends.
    std::deque<Control> controls;
    ListHook pending_hook;  ///< in the list of peers with something pending
    std::deque<message::SendRequest*> sends;  ///< eager or envelopes not yet out, and streams

    /// Messages that arrived ahead of their turn (over another path); owned by the message room.
    void* early = nullptr;
};

/// A place for one packet's payload, on the best path with room.
struct Slot {
    std::byte* payload = nullptr;
    shm::Header* header = nullptr;
    shm::Cell* cell = nullptr;  ///< set if on the base path
};

/// The longest payload that one packet to this peer can take now.
inline uint32_t payload_limit(const Peer& peer) { return peer.out && !peer.close_pending ? shm::kRingPayload : shm::Cell::kPayload; }

/// Finds room for a packet of `bytes` (at most payload_limit). False if there is none now. Fill header (kind, flags,
/// sequence, tag, context, source) and payload, then commit: a slot that was reserved must be committed.
bool reserve(Peer& peer, uint32_t bytes, Slot& slot);
void commit(Peer& peer, Slot& slot, uint32_t bytes);

/// Sends a small packet now, or as soon as there is room.
void send_control(Peer& peer, shm::Kind kind, const void* payload, uint32_t bytes);

/// Counts one message for the policy; asks for a connection when it pays. Inline part of every send.
void consider_opening(Peer& peer);
inline void count_message(Peer& peer) {
    if (++peer.sent_since_check >= 4 && peer.state == State::closed) consider_opening(peer);
}

/// Closes a connection (policy, tests). Messages go on over the base path.
void request_close(Peer& peer);

/// Puts the peer on the list of those with something pending; flush tries again at each poll.
void mark_pending(Peer& peer);

/// Whether any peer has something pending.
bool anything_pending();

/// Visits the peers with something pending; the visitor may take it away.
void each_pending(void (*visit)(Peer& peer));

/// One packet as it is delivered upward; valid during the call.
struct Packet {
    const shm::Header& header;
    const std::byte* payload;
};

/// Upcalls of the message room, set once before the first poll.
struct Upcalls {
    void (*deliver)(Peer& peer, const Packet& packet);  ///< kinds eager … piece
    bool (*flush)(Peer& peer);  ///< try to send what is pending; false if something is left
    void (*spawn_control)(Peer& peer, const Packet& packet);
    void (*job_failed)(Job& job);  ///< after everything it had sent was delivered
};
extern Upcalls upcalls;

/// Begins to receive: once, after adopt_own_job().
void start();

/// Polls rings, inbox and pending sends once. Returns whether anything happened.
bool poll();

/// Looks whether other jobs' launchers and jobs still live; reports those that don't. Gives whether anything was
/// delivered or reported. For slow paths.
bool check_liveness();

}  // namespace starling::link
