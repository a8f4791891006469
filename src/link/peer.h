// A peer: another process (or this one) that we have met, and the paths to it.
#pragma once

#include <cstdint>
#include <deque>

#include "base/copy.h"
#include "base/counters.h"
#include "base/list.h"
#include "link/connection.h"
#include "link/job.h"
#include "transport/packet.h"
#include "transport/shm/region.h"

namespace starling::message {
struct SendRequest;
}
namespace starling::ip {
class OutStream;
class Session;
struct Piece;
}  // namespace starling::ip

namespace starling::link {

struct Wire;

/// A small packet that found no room; payload at most shm::kInlineBytes.
struct Control {
    packet::Kind kind;
    uint32_t bytes;
    std::byte payload[shm::kInlineBytes];
};

/// The longest payload of a packet to another host.
inline constexpr uint32_t kRemotePayload = 16 * 1024;

/// Comes into being at the first message in either direction; lives as long as its job is known here.
struct Peer {
    Peer(Job& job, uint32_t rank, shm::Region region);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    Job& job;
    const uint32_t rank;
    shm::Region region;  ///< of the peer: its doorbell, inbox, rings; on another host it has none that we see

    bool remote = false;             ///< on another host; all that follows is for such peers
    uint16_t port = 0;               ///< UDP, as the session was told; 0: not known yet
    ip::Session* session = nullptr;  ///< null when the peer is dead
    uint64_t asked_at = 0;           ///< ns; when the daemon was last asked whether it lives
    uint32_t looks = 0;              ///< of its cell, as the daemon said last; 0: not known
    Wire* wire = nullptr;            ///< the TCP connection (link/wires.h), in states other than closed
    uint64_t bytes_since_check = 0;  ///< of long messages; decides with sent_since_check

    shm::RingWriter out;  ///< set while we may send on a ring of theirs
    shm::RingReader in;   ///< set while they may send on a ring of ours
    uint32_t in_slot = 0;
    State state = State::closed;
    bool close_pending = false;  ///< the ring waits for room for its close; send on the base path meanwhile
    bool open_deferred = false;
    std::byte deferred_offer[shm::kInlineBytes] = {};
    bool dead = false;
    char* why_dead = nullptr;  ///< the sentence for those who ask for it, if it died while its job went on

    uint32_t next_send = 0;                           ///< sequence number of the next message to them
    uint32_t open_offers = 0;                         ///< long messages to them that they have not fetched yet
    uint32_t offers_from_far = 0;                     ///< those offered while copies to them took long
    bool expects = false;                             ///< a receive was waiting for the last long message to them
    uint32_t ahead_serial = 0, ahead_generation = 0;  ///< what their pieces belong to that come unasked; generation 0: nothing
    uint32_t next_receive = 0;                        ///< of the next message from them to match

    uint32_t sent_since_check = 0;  ///< messages; decides on opening and closing
    uint32_t value = 0;             ///< messages per window, decaying
    uint32_t backoff = 0;           ///< windows to wait after a refusal

    /// Things that found no room, oldest first; controls go before sends.
    std::deque<Control> controls;
    ListHook pending_hook;                    ///< in the list of peers with something pending
    std::deque<message::SendRequest*> sends;  ///< eager or envelopes not yet out, and streams

    CopyPath copies;  ///< into their region

    /// Messages that arrived ahead of their turn (over another path); owned by the message room.
    void* early = nullptr;
};

/// A place for one packet's payload, on the best path with room.
struct Slot {
    std::byte* payload = nullptr;
    packet::Header* header = nullptr;
    enum class Path : uint8_t { ring, ring_outbox, inbox, inbox_outbox, session } path = Path::ring;
    shm::Cell* cell = nullptr;  ///< of the inbox
    bool in_outbox() const { return path == Path::ring_outbox || path == Path::inbox_outbox; }
};

/// The longest payload that a packet to an inbox can take now: it depends on what room there is in the outbox.
uint32_t inbox_limit();
/// The longest payload that one packet to this peer can take now. On the way to another host a longer one is cut.
inline uint32_t payload_limit(const Peer& peer) {
    if (peer.out && !peer.close_pending) [[likely]]
        return shm::kRingPayload;
    return peer.remote ? kRemotePayload : inbox_limit();
}
/// What reserve() and commit() do where there is no ring.
bool reserve_on_base_path(Peer& peer, uint32_t bytes, Slot& slot);
/// What reserve() does with what is too long for a ring's line, or finds no room.
bool reserve_long(Peer& peer, uint32_t bytes, Slot& slot);
/// What commit() does with what is not all in a ring.
void commit_elsewhere(Peer& peer, Slot& slot, uint32_t bytes);

/// Finds room for a packet of `bytes` (at most payload_limit). False if there is none now. Fill the header (kind, and what a packet of that
/// kind says there) and payload, then commit: a slot that was reserved must be committed.
inline bool reserve(Peer& peer, uint32_t bytes, Slot& slot) {
    if (!peer.out || peer.close_pending) [[unlikely]]
        return reserve_on_base_path(peer, bytes, slot);
    slot.payload = peer.out.reserve_short(bytes);
    if (!slot.payload) return reserve_long(peer, bytes, slot);
    slot.header = &peer.out.header();
    slot.path = Slot::Path::ring;
    return true;
}

inline void commit(Peer& peer, Slot& slot, uint32_t bytes) {
    if (slot.path != Slot::Path::ring) [[unlikely]]
        return commit_elsewhere(peer, slot, bytes);
    peer.out.commit(bytes);
    ++counters.messages_ring;
    counters.bytes_ring += bytes;
    job::ring(peer.region.doorbell());
}

/// Sends a small packet now, or as soon as there is room.
void send_control(Peer& peer, packet::Kind kind, const void* payload, uint32_t bytes);

/// Counts one message for the policy; asks for a connection when it pays. Inline part of every send.
void consider_opening(Peer& peer);
inline void count_message(Peer& peer) {
    if (++peer.sent_since_check >= 4 && peer.state == State::closed) consider_opening(peer);
}

/// Counts a long message to another host for the same.
inline void count_bytes(Peer& peer, uint64_t bytes) {
    if (!peer.remote) return;
    peer.bytes_since_check += bytes;
    if (peer.state == State::closed) consider_opening(peer);
}
/// Asks for a connection whatever the traffic, if there is a place for it (a hint).
void request_connection(Peer& peer);

/// Closes a connection (policy, tests). Messages go on over the base path.
void request_close(Peer& peer);

/// Puts the peer on the list of those with something pending; flush tries again at each poll.
void mark_pending(Peer& peer);

/// Whether any peer has something pending.
bool anything_pending();
/// Whether one of them waits for room in this host's memory: whoever makes it does not ring.
bool anything_waits_for_room_here();

/// Visits the peers with something pending; the visitor may take it away.
void each_pending(void (*visit)(Peer& peer));

/// One packet as it is delivered upward; valid during the call.
struct Packet {
    const packet::Header& header;
    const std::byte* payload;
};

/// Upcalls of the message room, set once before the first poll.
struct Upcalls {
    void (*deliver)(Peer& peer, Packet packet);  ///< kinds eager … piece
    bool (*flush)(Peer& peer);                   ///< try to send what is pending; false if something is left
    void (*spawn_control)(Peer& peer, const Packet& packet);
    void (*access)(Peer& peer, const Packet& packet);  ///< null as long as this process has exposed and accessed none
    void (*job_failed)(Job& job);                      ///< after everything it had sent was delivered
    void (*peer_failed)(Peer& peer);                   ///< while its job goes on; failure_text() says what happened
    bool (*owes)(const Job& job);                      ///< whether messages of a job that is gone may still be received
    void (*forget_peer)(Peer& peer);                   ///< before a peer of a job that is gone is destroyed

    // Streams over TCP: see ip::TcpUpcalls.
    std::byte* (*target)(Peer& peer, const ip::Piece& piece, uint64_t done, uint64_t bytes);
    void (*unpack)(Peer& peer, const ip::Piece& piece, uint64_t done, const std::byte* data, uint64_t bytes);
    void (*piece)(Peer& peer, const ip::Piece& piece);
    void (*stranded)(ip::OutStream& stream);
};
extern Upcalls upcalls;

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
/// Polls the inbox, the network and pending sends once; `busy`: something has come already. Returns whether anything
/// happened.
bool poll_but_rings(bool busy);
/// Both.
inline bool poll() {
    const bool any = poll_rings();
    return poll_but_rings(any) || any;
}
/// Whether poll_rings() would find something.
bool rings_hold_something();

/// Looks whether other jobs' launchers and jobs still live; reports those that don't. Gives whether anything was
/// delivered or reported. For slow paths.
bool check_liveness();

}  // namespace starling::link
