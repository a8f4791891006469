// A session makes the base path between this process and one peer reliable. It is a pure protocol without sockets and clock; the caller
// passes in time and datagrams, so that tests can run it against a simulated network.
//
// Packets (a 32-byte packet::Header and a payload) form one stream of bytes per direction, and a datagram carries a stretch of it. So data
// that was cut for one path can be cut differently for another. The receiver acknowledges stream bytes, whatever carried them.
// docs/network.md describes the protocol in full.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "transport/network/session/carrier.h"
#include "transport/network/session/in_flight.h"
#include "transport/network/session/path.h"
#include "transport/network/session/ranges.h"
#include "transport/network/session/reassembly.h"
#include "transport/network/session/send_buffer.h"
#include "transport/network/wire/datagram.h"
#include "transport/packet.h"
#include "transport/sink.h"

namespace starling::network {

/// The longest payload of a packet, bytes, whatever carries it.
inline constexpr uint32_t kMaxPayload = 64 * 1024;
inline constexpr int kMaxAddresses = 4;  ///< most addresses of a peer in use; also most paths, by UDP and verbs together
inline constexpr int kMaxCarriers = 4;   ///< most simultaneous connections of one session
static_assert(kFirstCarrier >= kMaxAddresses);
/// Most selective acknowledgements in a datagram with stream bytes; a datagram without stream bytes holds kMostRanges.
inline constexpr int kRangesWithData = 4;

class Session;

/// The name of a process in datagrams.
struct PeerName {
    uint64_t job = 0;
    uint32_t rank = 0;
    bool operator==(const PeerName&) const = default;
};

/// The reason why a session ended.
enum class SessionFailure : uint8_t {
    none,
    silent,       ///< the peer sent nothing for too long, and no daemon reported that it is alive
    unreachable,  ///< the peer polls its sockets, but our data does not reach it: usually a firewall
    successor,    ///< another process has replaced the peer
    broken,       ///< the peer's stream is malformed
};

struct SessionCounters {
    uint64_t packets_sent = 0, packets_received = 0;
    uint64_t acks_alone = 0, repeated = 0, timeouts = 0, duplicates = 0, out_of_order = 0, stale = 0, malformed = 0;
};

/// The services that all sessions of a process share and call.
class SessionEnvironment {
  public:
    /// Sends a datagram, at once or at flush(). The first part is valid during the call, the others until flush(). If the kernel did not
    /// take the datagram, send() or flush() calls Session::refused(number, …).
    virtual void send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) = 0;
    virtual void flush() = 0;
    /// Handles the peer's list of verbs ports, a packet of kind `ports`, which is not for the session's receiver.
    virtual void handle_ports(Session& session, const std::byte* payload, uint32_t bytes) = 0;
    /// Reports that the peer is unreachable. Called once per session, which is already closed.
    virtual void unreachable(Session& session) = 0;
    /// Returns a number greater than all returned before, also by earlier runs of this process; not 0.
    virtual uint64_t new_epoch() = 0;

    PeerName self;
    uint64_t key = 0;                 ///< key that datagrams to this process must carry
    uint32_t window = 1 << 20;        ///< bytes that a session stores, for each direction; at most 16 MB
    uint64_t timeout = 30 * kSecond;  ///< ns of silence until a peer counts as unreachable
    uint32_t seal_bytes = 0;          ///< bytes that encryption adds to every datagram
    SlabPool slabs;
    SessionCounters counters;

  protected:
    ~SessionEnvironment() = default;
};

/// The receiver of a session's packets, and the value that it gets with each. The session calls it directly, so that a packet passes no
/// layer between the session and the room above the transport.
struct SessionReceiver {
    transport::PacketReceiver* sink = nullptr;
    void* user = nullptr;
};

/// The state of one session. Not thread-safe. `now` is in ns and never decreases.
class Session : private PacketSink {
  public:
    Session(SessionEnvironment& outside, PeerName peer, uint64_t key, SessionReceiver receiver, void* user);
    ~Session() = default;

    const PeerName peer;
    SessionReceiver receiver;
    void* user;            ///< value that is passed to the upcalls of the environment's owner
    ListHook active_hook;  ///< membership in the owner's list of sessions with a deadline

    // Functions for the peer's addresses.

    uint64_t key() const { return key_; }
    void set_key(uint64_t key) { key_ = key; }
    /// Sets path `index` (< kMaxAddresses). `datagram`: the longest datagram that the rail takes, UDP payload bytes. A verbs path carries
    /// no data until it has answered a probe, and all data afterwards.
    void set_path(int index, const Route& route, uint32_t datagram);
    /// Removes a path; its datagrams in flight are sent again another way.
    void remove_path(int index);
    const SessionPath& path(int index) const { return paths_[index]; }
    /// Returns whether data is sent on a preferred (verbs) path.
    bool prefers() const { return preferred_ > 0 && preferred_path() >= 0; }
    /// Returns the index of the preferred path that is used first; -1: none answers.
    int preferred_path() const;
    /// Reports that the socket that refused a datagram as busy has room again.
    void unblock() { blocked_until_ = 0; }
    bool reachable() const { return key_ != 0 && (has_path() || carrier_count_ > 0); }

    void attach(Carrier& carrier);
    bool can_attach() const { return !dead_ && carrier_count_ < kMaxCarriers; }
    void detach(Carrier& carrier);
    void writable(Carrier& carrier);

    // Functions for sending.

    /// Returns space for a packet, nullptr if the buffer is full; see Endpoint::reserve.
    packet::Header* reserve(uint32_t payload) {
        const uint32_t bytes = packet_bytes(payload);
        if (buffer_.stored() + bytes > outside_.window && buffer_.stored() != 0) [[unlikely]]
            return refuse_room();
        if (dead_) [[unlikely]]
            return nullptr;
        return buffer_.reserve(payload);
    }
    void commit(uint32_t payload, uint64_t now) {
        if (waiting_since_ == 0) waiting_since_ = now;
        buffer_.commit(payload);
        ++outside_.counters.packets_sent;
    }
    uint32_t payload_limit() const;
    /// Sends everything that may be sent now, and the acknowledgement if it is due.
    void transmit(uint64_t now);
    /// Sends the delayed acknowledgement, if there is one.
    void flush_ack(uint64_t now);
    /// Handles the kernel's refusal of the datagram `number`. `now` is the time of the refusal, not that at which a poll began: pauses begin
    /// at it.
    void refused(uint32_t number, SendResult why, uint64_t now);

    // Functions for receiving.

    /// Handles a datagram that has arrived; returns false if it was dropped. `path`: index of the path it arrived on, -1 if there is none
    /// or `carrier` delivered it. Delivers packets but does not reply: call transmit() once after several datagrams.
    bool receive(const Datagram& datagram, int path, Carrier* carrier, uint64_t now);
    /// For a closed session: returns whether the datagram is from a later incarnation of the peer than the closed session's.
    bool is_successor(const DatagramHeader& header) const { return header.epoch > peer_epoch_ && header.epoch > past_epoch_; }

    // Functions for time.

    /// Returns when on_timer() must be called, ns; UINT64_MAX: never.
    uint64_t deadline() const;
    void on_timer(uint64_t now);

    // Functions for the session's state.

    bool idle() const { return buffer_.stored() == 0; }
    /// Returns whether data waits to be sent or retransmitted as soon as a path has room.
    bool has_next() const { return !lost_.empty() || next_ < std::min(buffer_.end(), limit_); }
    bool all_sent() const { return next_ == buffer_.end(); }
    bool dead() const { return dead_; }
    SessionFailure failure() const { return failure_; }
    /// Returns whether the buffer got room since reserve() last failed, and resets this flag.
    bool fetch_room_made();
    uint64_t stalled_since() const;
    void confirm_alive(uint64_t now, bool looks);
    /// Excludes a time from the peer's silence: this process did not poll its sockets for `away` ns.
    void forgive(uint64_t away, uint64_t now);
    uint64_t round_trip() const;
    uint64_t epoch() const { return epoch_; }
    /// Frees everything and accepts nothing more. Afterwards revive() may start a new stream, to another incarnation of the peer.
    void close();
    void revive(uint64_t key, SessionReceiver new_receiver, void* new_user);
    /// Asks the peer for a sign of life by a datagram, if a path is available. answered_at() is the time of its last answer.
    void request_ack(uint64_t now);
    /// Sends a probe on each path, because an address of this process has changed. The peer learns the new address from the probe.
    void announce(uint64_t now);
    uint64_t answered_at() const { return answered_at_; }
    /// Returns whether the peer may delay acknowledgements for longer than kAckDelay.
    bool allows_hold() const { return hold_ > 0; }
    /// Asks the peer for the acknowledgements that it delays.
    void request_acks(uint64_t now);
    /// For tests: bytes in flight on all paths.
    uint64_t in_flight() const;

  private:
    // Functions of session.cpp.
    bool deliver(const packet::Header& header, const std::byte* payload) override;
    packet::Header* refuse_room();
    bool has_path() const;
    void fail(SessionFailure why);
    void reset_sending();
    void abandon(uint8_t via);

    // Functions of send.cpp.
    struct Head;
    SequenceRange next_range();
    int pick_path();
    template <class Fits>
    int first_path(Fits fits) const;
    int pick_carrier() const;
    int pick_path_beside(const SequenceRange& range) const;
    bool carriers_serve() const;
    int asking_path() const;
    bool send_next(uint64_t now);
    bool send_frame(int index, SequenceRange range, uint64_t now);
    bool send_datagram(int index, SequenceRange range, uint64_t now);
    void fill(Head& head, uint64_t offset, uint32_t stream_bytes, int most_ranges, uint32_t number, uint64_t now);
    void cut(SequenceRange& range, uint32_t room);
    uint8_t allow_hold(uint64_t now);
    void count_as_sent(SequenceRange range);
    void send_bare(int index, bool probe, uint64_t now);
    bool ack_due(uint64_t now) const { return owed_.ack_at != 0 && owed_.ack_at <= now; }
    int reply_path() const;
    bool acknowledge_by(int carrier, uint64_t now);
    /// The state of the acknowledgement that is owed to the peer.
    struct Owed {
        uint64_t confirmed = 0;  ///< stream offset that the last acknowledgement confirmed
        uint64_t ack_at = 0;     ///< time (ns) when the acknowledgement must be sent; 0: none is due
        uint64_t bytes = 0;      ///< number of bytes from carriers since the last acknowledgement
        uint32_t count = 0;      ///< number of datagrams since the last acknowledgement
        uint32_t echo = 0;       ///< number of the last datagram or probe that arrived
        bool twice = false;      ///< whether one of the datagrams contained only duplicate bytes
    };

    // Functions of receive.cpp.
    bool right_incarnation(const Datagram& datagram, uint64_t now);
    /// Return whether the datagram shows that the peer receives our data.
    bool handle_acks(const Datagram& datagram, uint64_t now);
    /// Frees the data below `offset`, which has arrived at the peer. Returns whether that was not known before.
    bool release_to(uint64_t offset);
    void mark_arrived(bool everything);
    void arrived(Flown& flown);
    bool handle_echo(const DatagramHeader& header, uint64_t now);
    bool handle_probe_answer(const DatagramHeader& header, uint64_t now);
    static void answered(SessionPath& path, uint64_t sent_at, uint64_t held, uint64_t now);
    void note_echo(uint32_t number, bool probe, uint64_t now);
    bool handle_stream(const Datagram& datagram, Carrier* carrier, uint64_t now);
    void find_losses(uint64_t now);
    void note_loss(uint64_t now) { lost_at_ = lost_before_ = now; }
    void lose(Flown& flown, bool congestion);
    uint32_t size_of_datagram(uint32_t length) const;
    void note_arrival_of_size(SessionPath& path, uint32_t length);
    void note_loss_of_size(SessionPath& path, uint32_t length);
    void want_ack(uint64_t at) {
        if (owed_.ack_at == 0 || at < owed_.ack_at) owed_.ack_at = at;
    }

    // Functions of timers.cpp.
    void on_path_timeout(int index, uint64_t now);
    void consider_leaving(int index, uint64_t now);
    uint64_t carriers_late_at() const;
    bool by_devices_alone() const { return carrier_count_ > 0 && device_count_ == carrier_count_; }
    void on_carriers_late(uint64_t now);
    void question_carriers(uint64_t now);
    void probe_suspended(uint64_t now);
    bool waiting() const { return waiting_since_ != 0; }
    uint64_t silent_since() const;
    /// Returns the start of the interval after which a live peer that receives nothing is given up; undelivered_since_ is not 0.
    uint64_t undelivered_since() const;
    /// Returns when the peer last gave a sign that it polls its sockets: by a datagram, or by its daemon.
    uint64_t active_at() const { return std::max(last_received_at_, peer_polled_at_); }
    /// Handles a sign that the peer is active but receives nothing; the last one was at `before`. Restarts the timeout after a long pause.
    void restart_after_pause(uint64_t before, uint64_t now);
    bool is_abandoned(uint64_t now);

    SessionEnvironment& outside_;
    uint64_t key_;

    // State of the outgoing stream.
    uint64_t epoch_;
    SendBuffer buffer_;
    uint64_t next_ = 0;         ///< offset of the first byte that was never sent
    uint64_t packet_hint_ = 0;  ///< offset of a packet at or before next_, from which SendBuffer::cut() searches
    uint64_t limit_;            ///< end of the peer's receive window
    RangeSet sacked_;           ///< bytes that are selectively acknowledged
    RangeSet lost_;             ///< sent bytes that must be retransmitted
    Flight flight_;
    uint32_t repeats_ = 0;                ///< number of records in flight that are out of stream order
    uint32_t carried_ = 0;                ///< number of records in flight on carriers
    uint32_t carrier_question_ = 0;       ///< number of the datagram that asks the peer about data on carriers; 0: none
    uint64_t carried_since_ = 0;          ///< time (ns) when the first carrier record was sent or data was last acknowledged
    uint64_t lost_at_ = 0;                ///< time (ns) of the last loss or timeout, or of the stream's beginning; 0: unset
    uint64_t lost_before_ = 0;            ///< value of lost_at_ before the latest timeouts, restored if these were spurious
    uint64_t hold_ = 0;                   ///< ns by which the peer may delay an acknowledgement beyond kAckDelay
    uint64_t reported_end_ = UINT64_MAX;  ///< offset below which the last selective acknowledgement is complete
    uint64_t loss_check_at_ = 0;          ///< time (ns) when a datagram that was overtaken counts as lost; 0: none
    uint64_t blocked_until_ = 0;          ///< time (ns) before which nothing is sent, as the kernel's send buffer is full

    // State of the incoming stream.
    uint64_t peer_epoch_ = 0;  ///< epoch of the peer's stream; 0: no datagram has arrived yet
    uint64_t past_epoch_ = 0;  ///< epoch of the peer's previous incarnation; 0: there was none
    Reassembly in_;
    Owed owed_;
    bool echo_probe_ = false;  ///< whether the number to echo is a probe's: a later datagram does not replace it
    uint64_t echo_at_ = 0;
    int8_t last_path_ = -1;  ///< path of the last datagram that arrived; -1: none

    // State of the failure detection; times in ns.
    uint64_t waiting_since_ = 0, last_received_at_ = 0, vouched_at_ = 0;
    uint64_t answered_at_ = 0;        ///< time (ns) when the peer last answered a datagram of ours
    uint64_t peer_polled_at_ = 0;     ///< time (ns) when the peer is last known to have polled its sockets
    uint64_t probe_at_ = 0;           ///< time (ns) of the next probe of suspended paths; 0: never
    uint64_t duplicate_at_ = 0;       ///< time (ns) when the peer last repeated a datagram that had arrived
    uint64_t undelivered_since_ = 0;  ///< time (ns) since which the live peer has received nothing; 0: it receives our data
    SessionFailure failure_ = SessionFailure::none;
    bool dead_ = false;
    bool room_refused_ = false, room_made_ = false;
    bool refused_ = false;  ///< whether the kernel refused a datagram since transmit() began
    bool acknowledged_ =
        false;  ///< whether the peer has acknowledged something of this stream, so that it needs no introduction

    uint8_t preferred_ = 0;  ///< number of preferred paths
    uint8_t carrier_count_ = 0;
    uint8_t device_count_ = 0;     ///< number of carriers whose frames a device carries
    uint8_t carrier_backoff_ = 0;  ///< number of consecutive unanswered requests about data on carriers
    struct Attached {
        Carrier* carrier = nullptr;
        bool busy = false;
        bool gone = false;
    };
    Attached carriers_[kMaxCarriers];
    SessionPath paths_[kMaxAddresses];
};

}  // namespace starling::network
