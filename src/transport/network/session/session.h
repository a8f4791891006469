// A session: everything between this process and one peer on the base path, made reliable. A pure protocol: no
// sockets and no clock; time and datagrams are passed in, so that it runs against a simulated network.
//
// Packets (a 32-byte packet::Header and a payload) form one stream of bytes per direction. A datagram carries a
// stretch of it, so that what was cut for one path can be cut anew for another; the receiver acknowledges bytes, at
// this level, whatever brought them. docs/network.md tells it whole.
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

namespace starling::network {

/// The longest payload of one packet, whatever carries it.
inline constexpr uint32_t kMaxPayload = 64 * 1024;
inline constexpr int kMaxAddresses = 4;  ///< of a peer that are used; also paths, by UDP and verbs together
inline constexpr int kMaxCarriers = 4;   ///< connections of one session at the same time
static_assert(kFirstCarrier >= kMaxAddresses);
/// Selective acknowledgements in a datagram that has stream bytes; one without holds kMostRanges.
inline constexpr int kRangesWithData = 4;

class Session;

/// A process as the base path names it.
struct Name {
    uint64_t job = 0;
    uint32_t rank = 0;
    bool operator==(const Name&) const = default;
};

/// Why a session ended.
enum class Failure : uint8_t {
    none,
    silent,     ///< nothing was heard for too long, and nobody vouched for the peer
    deaf,       ///< the peer looks at its sockets, but what is sent to it does not arrive: a firewall, as a rule
    successor,  ///< another process has taken the peer's place
    broken,     ///< its stream is no stream
};

struct SessionCounters {
    uint64_t packets_sent = 0, packets_received = 0;
    uint64_t acks_alone = 0, repeated = 0, timeouts = 0, duplicates = 0, out_of_order = 0, stale = 0, malformed = 0;
};

/// What all sessions of a process share, and what they need from outside.
class SessionEnvironment {
  public:
    /// Sends a datagram, or keeps it until flush(). The first part is valid during the call, the others until flush().
    /// One that was not taken is told by Session::refused(number, …), from here or from flush().
    virtual void send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) = 0;
    virtual void flush() = 0;
    virtual void deliver(Session& session, const packet::Header& header, const std::byte* payload) = 0;
    /// The peer is given up. Once per session; the session holds nothing any more.
    virtual void unreachable(Session& session) = 0;
    /// A number that is later than all it gave before, also in earlier runs of this process; not 0.
    virtual uint64_t new_epoch() = 0;

    Name self;
    uint64_t key = 0;                 ///< our own
    uint32_t window = 1 << 20;        ///< bytes a session keeps, sent or received; at most 16 MB
    uint64_t timeout = 30 * kSecond;  ///< of silence until a peer is given up, ns
    uint32_t seal_bytes = 0;          ///< that every datagram gets besides what send() is given
    SlabPool slabs;
    SessionCounters counters;

  protected:
    ~SessionEnvironment() = default;
};

/// Not thread-safe. `now` never runs backwards.
class Session : private PacketSink {
  public:
    Session(SessionEnvironment& outside, Name peer, uint64_t key, void* user);
    ~Session() = default;

    const Name peer;
    void* user;
    ListHook active_hook;  ///< for the owner: in the list of those with a deadline

    // Where the peer is.

    uint64_t key() const { return key_; }
    void set_key(uint64_t key) { key_ = key; }
    /// Sets path `index` (< kMaxAddresses). `datagram`: the longest that the rail takes, UDP payload bytes. One by verbs carries nothing
    /// before it has answered a probe, and then everything.
    void set_path(int index, const Route& route, uint32_t datagram);
    /// What is under way on it is sent again another way.
    void remove_path(int index);
    const Path& path(int index) const { return paths_[index]; }
    /// What is sent goes by a preferred path.
    bool prefers() const { return preferred_ > 0 && preferred_path() >= 0; }
    /// The preferred path that is used first; -1: none answers.
    int preferred_path() const;
    /// There is room again where a datagram was refused as busy.
    void unblock() { blocked_until_ = 0; }
    bool reachable() const { return key_ != 0 && (has_path() || carrier_count_ > 0); }

    void attach(Carrier& carrier);
    bool can_attach() const { return !dead_ && carrier_count_ < kMaxCarriers; }
    void detach(Carrier& carrier);
    void writable(Carrier& carrier);

    // Sending.

    /// Room for a packet, nullptr if the buffer is full; see Endpoint::reserve.
    packet::Header* reserve(uint32_t payload) {
        const uint32_t bytes = packet_bytes(payload);
        if (buffer_.kept() + bytes > outside_.window && buffer_.kept() != 0) [[unlikely]]
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
    /// Sends what may be sent now, and the acknowledgement if it is due.
    void transmit(uint64_t now);
    /// Sends the acknowledgement that is being held back, if there is one.
    void flush_ack(uint64_t now);
    /// The datagram was not taken by the kernel.
    void refused(uint32_t number, Sent why, uint64_t now);

    // Receiving.

    /// What came with a datagram; false if it was dropped. `path`: the one it came by, -1 if by none of them or by
    /// `carrier`. Delivers, but does not answer: transmit() does, once for several.
    bool receive(const Datagram& datagram, int path, Carrier* carrier, uint64_t now);
    /// Of a dead session: whether the datagram is from a later incarnation of the peer than the one given up.
    bool is_successor(const DatagramHeader& header) const { return header.epoch > peer_epoch_ && header.epoch > past_epoch_; }

    // Time.

    /// When on_timer() must be called; UINT64_MAX: never.
    uint64_t deadline() const;
    void on_timer(uint64_t now);

    // State.

    bool idle() const { return buffer_.kept() == 0; }
    /// Something is to be sent, or sent again, as soon as a way has room.
    bool has_next() const { return !lost_.empty() || next_ < std::min(buffer_.end(), limit_); }
    bool all_sent() const { return next_ == buffer_.end(); }
    bool dead() const { return dead_; }
    Failure failure() const { return failure_; }
    /// Whether room was made since reserve() last said no; forgets it.
    bool take_room_made();
    uint64_t stalled_since() const;
    void confirm_alive(uint64_t now, bool looks);
    /// This process did not look at its sockets for so long, ns: that time does not count as the peer's silence.
    void forgive(uint64_t away, uint64_t now);
    uint64_t round_trip() const;
    uint64_t epoch() const { return epoch_; }
    /// Lets go of everything; takes nothing any more. revive() makes it a new stream, to another incarnation.
    void close();
    void revive(uint64_t key, void* new_user);
    /// Asks the peer for a sign of life by a datagram, if there is a way. answered_at() tells when it answered one.
    void ask(uint64_t now);
    /// Shows the peer by each path where it comes from: an address of ours has changed, and we may have nothing else to say.
    void announce(uint64_t now);
    uint64_t answered_at() const { return answered_at_; }
    /// The peer was told that it may hold back acknowledgements for longer than kAckDelay.
    bool allows_hold() const { return hold_ > 0; }
    /// Asks for those.
    void request_acks(uint64_t now);
    /// For tests: bytes under way on all paths.
    uint64_t in_flight() const;

  private:
    // session.cpp
    bool deliver(const packet::Header& header, const std::byte* payload) override;
    packet::Header* refuse_room();
    bool has_path() const;
    void fail(Failure why);
    void reset_sending();
    void give_up(uint8_t via);

    // send.cpp
    struct Head;
    Range next_range();
    int pick_path();
    template <class Fits>
    int first_path(Fits fits) const;
    int pick_carrier() const;
    int pick_path_beside(const Range& range) const;
    bool carriers_serve() const;
    int asking_path() const;
    bool send_next(uint64_t now);
    bool send_frame(int index, Range range, uint64_t now);
    bool send_datagram(int index, Range range, uint64_t now);
    void fill(Head& head, uint64_t offset, uint32_t stream_bytes, int most_ranges, uint32_t number, uint64_t now);
    void cut(Range& range, uint32_t room);
    uint8_t allow_hold(uint64_t now);
    void count_as_sent(Range range);
    void send_bare(int index, bool probe, uint64_t now);
    bool ack_due(uint64_t now) const { return owed_.ack_at != 0 && owed_.ack_at <= now; }
    int reply_path() const;
    bool acknowledge_by(int carrier, uint64_t now);
    /// What is owed to the peer, and an acknowledgement tells.
    struct Owed {
        uint64_t told = 0;    ///< as far as the last acknowledgement went
        uint64_t ack_at = 0;  ///< when the acknowledgement must go out; 0: none is owed
        uint64_t bytes = 0;   ///< that came over carriers since the last acknowledgement
        uint32_t count = 0;   ///< datagrams since the last acknowledgement
        uint32_t echo = 0;    ///< number of the last datagram, or of the last probe
        bool twice = false;   ///< one of them brought nothing new
    };

    // receive.cpp
    bool right_incarnation(const Datagram& datagram, uint64_t now);
    /// These give whether the datagram shows that the peer gets what we send.
    bool take_acks(const Datagram& datagram, uint64_t now);
    /// All below has arrived. Whether that is news.
    bool release_to(uint64_t offset);
    void mark_arrived(bool everything);
    void arrived(Flown& flown);
    bool take_echo(const DatagramHeader& header, uint64_t now);
    bool take_probe_answer(const DatagramHeader& header, uint64_t now);
    static void answered(Path& path, uint64_t sent_at, uint64_t held, uint64_t now);
    void note_echo(uint32_t number, bool probe, uint64_t now);
    bool take_stream(const Datagram& datagram, Carrier* carrier, uint64_t now);
    void find_losses(uint64_t now);
    void note_loss(uint64_t now) { lost_at_ = lost_before_ = now; }
    void lose(Flown& flown, bool congestion);
    uint32_t size_of_datagram(uint32_t length) const;
    void note_arrival_of_size(Path& path, uint32_t length);
    void note_loss_of_size(Path& path, uint32_t length);
    void want_ack(uint64_t at) {
        if (owed_.ack_at == 0 || at < owed_.ack_at) owed_.ack_at = at;
    }

    // timers.cpp
    void on_path_timeout(int index, uint64_t now);
    void consider_leaving(int index, uint64_t now);
    uint64_t carriers_late_at() const;
    bool by_devices_alone() const { return carrier_count_ > 0 && device_count_ == carrier_count_; }
    void on_carriers_late(uint64_t now);
    void question_carriers(uint64_t now);
    void probe_suspended(uint64_t now);
    bool waiting() const { return waiting_since_ != 0; }
    uint64_t silent_since() const;
    bool is_given_up(uint64_t now);

    SessionEnvironment& outside_;
    uint64_t key_;

    // Our stream.
    uint64_t epoch_;
    SendBuffer buffer_;
    uint64_t next_ = 0;         ///< first byte that was never sent
    uint64_t packet_hint_ = 0;  ///< where a packet begins, at or before next_
    uint64_t limit_;            ///< as far as the peer takes
    RangeSet sacked_;           ///< arrived beyond the first hole
    RangeSet lost_;             ///< to be sent again
    Flight flight_;
    uint32_t repeats_ = 0;            ///< records in flight whose order is not that of the stream
    uint32_t carried_ = 0;            ///< records in flight on carriers
    uint32_t carrier_question_ = 0;   ///< number of the datagram that asks after them; 0: none
    uint64_t carried_since_ = 0;      ///< when the first of them was sent, or something was acknowledged since
    uint64_t lost_at_ = 0;            ///< something, or the stream began, or nothing was answered in time,
    uint64_t lost_before_ = 0;        ///< before which it had been this; so it is still if nothing turns out to be lost
    uint64_t hold_ = 0;               ///< besides kAckDelay the peer may keep back its acknowledgement for so long
    uint64_t told_end_ = UINT64_MAX;  ///< the last selective acknowledgement leaves out nothing below this
    uint64_t loss_check_at_ = 0;      ///< when a datagram that was overtaken counts as lost; 0: none
    uint64_t blocked_until_ = 0;      ///< the kernel's buffer is full

    // Their stream.
    uint64_t peer_epoch_ = 0;  ///< 0: not heard of
    uint64_t past_epoch_ = 0;  ///< of the incarnation that was given up, if there was one
    Reassembly in_;
    Owed owed_;
    bool echo_probe_ = false;  ///< it is a probe's: what comes behind it does not take its place
    uint64_t echo_at_ = 0;
    int8_t last_path_ = -1;  ///< by which the last datagram came

    // Life.
    uint64_t waiting_since_ = 0, heard_at_ = 0, vouched_at_ = 0;
    uint64_t answered_at_ = 0;  ///< a datagram of ours, by the peer
    uint64_t looked_at_ = 0;    ///< by the peer at its sockets, as far as is known
    uint64_t probe_at_ = 0;     ///< of suspended paths; 0: none
    uint64_t deaf_since_ = 0;   ///< the peer is heard, or looks at its sockets, since then, but does not hear us; 0: it does
    Failure failure_ = Failure::none;
    bool dead_ = false;
    bool room_refused_ = false, room_made_ = false;
    bool refused_ = false;   ///< the kernel did not take something since transmit() began
    bool heard_us_ = false;  ///< the peer has acknowledged something of this stream: it needs no introduction

    uint8_t preferred_ = 0;  ///< paths that are preferred
    uint8_t carrier_count_ = 0;
    uint8_t device_count_ = 0;     ///< of these, devices'
    uint8_t carrier_backoff_ = 0;  ///< questions after carriers in a row that were not answered
    struct Attached {
        Carrier* carrier = nullptr;
        bool busy = false;
        bool gone = false;
    };
    Attached carriers_[kMaxCarriers];
    Path paths_[kMaxAddresses];
};

}  // namespace starling::network
