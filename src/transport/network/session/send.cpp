// The sending half of a session: chooses the next bytes, their path, and the datagram that carries them.
#include <algorithm>
#include <cstring>
#include <new>

#include "transport/network/session/session.h"

namespace starling::network {

namespace {
constexpr uint64_t kBesideMost = 1280;  ///< most bytes that are sent as a datagram although the session has a connection
constexpr uint64_t kBesideAll = 2 * kBesideMost;  ///< most bytes in the send buffer for a datagram beside a connection
constexpr uint8_t kBesideTimeouts = 3;            ///< consecutive timeouts after which the connection carries all data again
constexpr int kMostAttempts = 8;                  ///< most refusals by the kernel or a port until transmit() waits for 1 ms
}  // namespace

/// The front of a datagram, with room for everything that may follow the header.
struct Session::Head {
    DatagramHeader header;
    std::byte more[sizeof(Introduction) + kMostRanges * sizeof(AckRange)];
    uint32_t bytes;  ///< length of the header and the parts that follow it
};

// Returns the next bytes to send: lost bytes first, then new bytes within the peer's window.
SequenceRange Session::next_range() {
    while (!lost_.empty()) {
        SequenceRange range = lost_.front();
        const SequenceRange gap =
            sacked_.first_gap({std::max(range.start, buffer_.begin()), std::max(range.end, buffer_.begin())});
        if (gap.start < gap.end) return gap;
        lost_.remove(range);
    }
    return {next_, std::max(next_, std::min(buffer_.end(), limit_))};
}

int Session::pick_carrier() const {
    for (int i = 0; i < kMaxCarriers; ++i)
        if (carriers_[i].carrier && !carriers_[i].busy && !carriers_[i].gone) return i;
    return -1;
}

bool Session::carriers_serve() const {
    if (carrier_count_ == 0) [[likely]]
        return false;
    return std::any_of(std::begin(carriers_), std::end(carriers_),
                       [](const Attached& place) { return place.carrier && !place.gone; });
}

// Returns the path for a small range that is sent as a datagram although there is a connection. A live connection carries everything else,
// even while it is busy. The datagram arrives sooner if no other data is in flight on the connection, and is retransmitted as a datagram.
// Beside a device's connection a datagram is not faster.
int Session::pick_path_beside(const SequenceRange& range) const {
    const bool repeat = range.start < next_;
    if (range.length() > kBesideMost || (!repeat && (carried_ > 0 || buffer_.stored() > kBesideAll))) return -1;
    if (const int carrier = pick_carrier(); carrier >= 0 && carriers_[carrier].carrier->by_device()) return -1;
    return first_path([](const SessionPath& path) {
        return path.usable() && path.has_room() && path.backoff < kBesideTimeouts && path.proven();
    });
}

/// Returns the first path for which `fits` is true, preferred paths first; -1: none.
template <class Fits>
int Session::first_path(Fits fits) const {
    if (preferred_ > 0) [[unlikely]] {
        for (int i = 0; i < kMaxAddresses; ++i)
            if (paths_[i].preferred && fits(paths_[i])) return i;
    }
    for (int i = 0; i < kMaxAddresses; ++i)
        if (fits(paths_[i])) return i;
    return -1;
}

// Returns the first path with room. Later paths are used when earlier ones are full, so each carries as much as it can. If a preferred path
// answers, only preferred paths are used: the other paths are slow in comparison, and may share the same cable.
int Session::pick_path() {
    bool any = false, suspended = false;
    const bool preferred = prefers();
    for (int i = 0; i < kMaxAddresses; ++i) {
        SessionPath& path = paths_[i];
        if (!path.present) continue;
        suspended |= path.suspended;
        if (path.suspended || path.preferred != preferred) continue;
        any = true;
        if (path.has_room()) return i;
        path.full = true;
    }
    if (any || !suspended) return -1;
    // No path answers, so all count as equally good.
    for (int i = 0; i < kMaxAddresses; ++i) paths_[i].suspended = false;
    probe_at_ = 0;
    return pick_path();
}

void Session::transmit(uint64_t now) {
    if (dead_ || key_ == 0) return;
    // If a datagram is refused, its data is cut to another size, or takes another path. Each refusal ends an attempt, because the data would
    // otherwise be sent and refused forever.
    refused_ = true;
    for (int attempt = 0; refused_ && attempt < kMostAttempts; ++attempt) {
        refused_ = false;
        try {
            while (has_next() && !refused_ && send_next(now)) {}
        } catch (const std::bad_alloc&) {
            blocked_until_ = now + kMillisecond;  // handle lack of memory like a full kernel buffer
        }
        outside_.flush();
    }
    if (refused_) blocked_until_ = std::max(blocked_until_, now + kMillisecond);
    if (ack_due(now)) flush_ack(now);
}

bool Session::send_next(uint64_t now) {
    const SequenceRange range = next_range();
    if (range.start == range.end || flight_.full() || now < blocked_until_) return false;
    if (carriers_serve()) {
        const int beside = pick_path_beside(range);
        if (beside >= 0) return send_datagram(beside, range, now);
        const int carrier = pick_carrier();
        return carrier >= 0 && send_frame(carrier, range, now);
    }
    const int path = pick_path();
    return path >= 0 && send_datagram(path, range, now);
}

void Session::fill(Head& head, uint64_t offset, uint32_t stream_bytes, int most_ranges, uint32_t number, uint64_t now) {
    DatagramHeader& header = head.header;
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.flags = owed_.twice ? datagram_flag::kTwice : 0;
    header.key = key_;
    header.job = outside_.self.job;
    header.rank = outside_.self.rank;
    header.target_rank = peer.rank;
    header.epoch = epoch_;
    header.target_epoch = peer_epoch_;
    header.offset = offset;
    header.ack = in_.expected();
    header.number = number;
    header.echo = owed_.echo;
    header.echo_delay = 0;
    if (owed_.echo != 0 && now > echo_at_)
        header.echo_delay = static_cast<uint32_t>(std::min<uint64_t>((now - echo_at_) / kMicrosecond, UINT32_MAX));
    header.window = static_cast<uint16_t>(std::min<uint32_t>(in_.window() / kWindowUnit, UINT16_MAX));
    header.ranges = 0;
    header.hold = number != 0 || stream_bytes > 0 ? allow_hold(now) : 0;
    head.bytes = sizeof header;
    if (!acknowledged_) [[unlikely]] {
        header.flags |= datagram_flag::kIntroduce;
        std::memcpy(head.more, &outside_.key, sizeof(Introduction));
        head.bytes += sizeof(Introduction);
    }
    if (in_.has_holes()) [[unlikely]] {
        AckRange ranges[kMostRanges];
        bool more = false;
        header.ranges = static_cast<uint8_t>(in_.ranges(ranges, most_ranges, more));
        if (more) header.flags |= datagram_flag::kMoreRanges;
        std::memcpy(reinterpret_cast<std::byte*>(&head) + head.bytes, ranges, header.ranges * sizeof(AckRange));
        head.bytes += static_cast<uint32_t>(header.ranges * sizeof(AckRange));
    }
    header.bytes = head.bytes + stream_bytes;
    // The datagram that is being sent acknowledges everything delivered so far.
    owed_ = {};
    owed_.confirmed = in_.expected();
}

// Returns the acknowledgement delay that the peer may add, in units of kAckDelay. An acknowledgement that travels with data wakes no
// process by itself, which matters where processes share cores. The fewer losses, the less a delayed acknowledgement costs.
uint8_t Session::allow_hold(uint64_t now) {
    if (lost_at_ == 0) lost_at_ = now;
    const auto units = static_cast<uint8_t>(std::min<uint64_t>((now - lost_at_) / (kHoldShare * kAckDelay), kMostHold));
    hold_ = units * kAckDelay;
    return units;
}

// Shortens the range to as many whole packets as fit, or to a part of a packet that is longer than the room.
void Session::cut(SequenceRange& range, uint32_t room) {
    if (range.length() > room)
        range.end = buffer_.cut(range, room & ~(kGrain - 1), packet_hint_);
    else if (range.end == buffer_.end())
        packet_hint_ = range.end;
}

void Session::count_as_sent(SequenceRange range) {
    if (range.start >= next_) {
        next_ = range.end;
        return;
    }
    lost_.remove(range);
    ++outside_.counters.repeated;
}

bool Session::send_frame(int index, SequenceRange range, uint64_t now) {
    Attached& place = carriers_[index];
    const uint32_t room = std::min(place.carrier->frame_limit(), kMostFrame) - static_cast<uint32_t>(offsetof(Head, bytes));
    cut(range, room);
    iovec parts[Carrier::kMost];
    const int count = 1 + buffer_.parts(range, parts + 1, Carrier::kMost - 1);
    const Owed owed = owed_;
    Head head;
    fill(head, range.start, static_cast<uint32_t>(range.length()), kRangesWithData, 0, now);
    parts[0] = {&head, head.bytes};
    Carrier* const carrier = place.carrier;
    const SendResult sent = carrier->send(parts, count);
    if (sent != SendResult::done) {
        owed_ = owed;
        (sent == SendResult::busy ? place.busy : place.gone) = true;
        return true;  // the datagram was refused on this path, but another one may take it
    }
    const bool repeat = range.start < next_;
    const uint8_t via = static_cast<uint8_t>(kFirstCarrier + index);
    // Carriers keep order and lose nothing while they live, so one record covers consecutive frames as long as no other path is used.
    Flown* last = flight_.empty() ? nullptr : &flight_[flight_.next() - 1];
    if (last && last->in_flight && last->via == via && last->end() == range.start && !repeat && last->length < (1u << 30)) {
        last->length += static_cast<uint32_t>(range.length());
    } else {
        flight_.add() = {range.start, now, 0, static_cast<uint32_t>(range.length()), via, true, repeat, 0};
        repeats_ += repeat;
        if (carried_++ == 0) {
            carried_since_ = now;
            carrier_backoff_ = 0;
        }
    }
    count_as_sent(range);
    return true;
}

bool Session::send_datagram(int index, SequenceRange range, uint64_t now) {
    SessionPath& path = paths_[index];
    uint32_t front =
        outside_.seal_bytes + static_cast<uint32_t>(sizeof(DatagramHeader)) + (acknowledged_ ? 0 : sizeof(Introduction));
    if (in_.has_holes()) front += kRangesWithData * sizeof(AckRange);
    cut(range, path.datagram - front);
    iovec parts[Carrier::kMost];
    const int count = 1 + buffer_.parts(range, parts + 1, Carrier::kMost - 1);

    const bool repeat = range.start < next_;
    if (path.in_flight == 0) path.since_request = 0;
    path.credit = false;
    Flown& flown = flight_.add();
    const uint32_t number = flight_.next() - 1;
    flown = {range.start, now, path.next_order++, static_cast<uint32_t>(range.length()), static_cast<uint8_t>(index), true,
             repeat,      0};
    repeats_ += repeat;
    count_as_sent(range);

    Head head;
    fill(head, range.start, flown.length, kRangesWithData, number, now);
    parts[0] = {&head, head.bytes};
    const uint32_t cost = flown.length + kDatagramCost;
    path.in_flight += cost;
    path.since_request += cost;
    path.last_sent = now;
    // Request an acknowledgement four times per window, and when the congestion window or the peer's window is used up.
    if (path.since_request >= std::min<uint64_t>(path.window.bytes(), outside_.window) / 4 || repeat || next_ >= limit_) {
        head.header.flags |= datagram_flag::kAckNow;
        path.since_request = 0;
    }
    outside_.send(*this, path.route, number, parts, count);
    return true;
}

int Session::reply_path() const {
    // Prefer the path of the last datagram that arrived: it works, at least from the peer to us.
    if (last_path_ >= 0 && paths_[last_path_].present) return last_path_;
    const int usable = first_path([](const SessionPath& path) { return path.usable(); });
    return usable >= 0 ? usable : first_path([](const SessionPath& path) { return path.present; });
}

// Sends the delayed acknowledgement. Prefers a device's connection, where the acknowledgement is not lost and costs no system call. An
// acknowledgement that echoes a datagram is itself sent as a datagram.
void Session::flush_ack(uint64_t now) {
    if (owed_.ack_at == 0 || dead_ || key_ == 0) return;
    const int path = reply_path();
    const int carrier = carrier_count_ > 0 ? pick_carrier() : -1;
    const bool by_device = carrier >= 0 && owed_.echo == 0 && carriers_[carrier].carrier->by_device();
    if (carrier >= 0 && (by_device || path < 0) && acknowledge_by(carrier, now)) return;
    if (path < 0) {
        owed_.ack_at = now + kAckDelay;
        return;
    }
    send_bare(path, false, now);
    outside_.flush();
}

bool Session::acknowledge_by(int carrier, uint64_t now) {
    const Owed owed = owed_;
    Head head;
    fill(head, next_, 0, kMostRanges, 0, now);
    const iovec part{&head, head.bytes};
    const SendResult sent = carriers_[carrier].carrier->send(&part, 1);
    if (sent == SendResult::done) {
        ++outside_.counters.acks_alone;
        return true;
    }
    owed_ = owed;
    (sent == SendResult::busy ? carriers_[carrier].busy : carriers_[carrier].gone) = true;
    return false;
}

// Sends a datagram without stream bytes: an acknowledgement, or a probe, which requests one.
void Session::send_bare(int index, bool probe, uint64_t now) {
    SessionPath& path = paths_[index];
    uint32_t number = 0;
    if (probe) {
        if (flight_.full()) return;
        Flown& flown = flight_.add();
        number = flight_.next() - 1;
        if (path.suspended) {
            path.probe = number;
            path.probe_sent_at = now;
        } else {
            flown = {next_, now, path.next_order++, 0, static_cast<uint8_t>(index), true, false, 0};
            path.in_flight += kDatagramCost;
            path.last_sent = now;
        }
    } else {
        ++outside_.counters.acks_alone;
    }
    Head head;
    fill(head, next_, 0, kMostRanges, number, now);
    if (probe) head.header.flags |= datagram_flag::kAckNow;
    const iovec part{&head, head.bytes};
    outside_.send(*this, path.route, number, &part, 1);
}

void Session::refused(uint32_t number, SendResult why, uint64_t now) {
    Flown* const flown = flight_.find(number);
    if (!flown || !flown->in_flight) return;
    SessionPath& path = paths_[flown->via];
    refused_ = true;
    if (why == SendResult::too_long && path.datagram > kLeastDatagram) {
        path.datagram = next_smaller_datagram(path.datagram);
        path.window.set_datagram(path.datagram);
    } else if (why == SendResult::busy) {
        blocked_until_ = now + kMillisecond;
    } else {
        // Suspend the path, and probe it until the kernel has a route again, which Rails reports. If there is no other path, wait before
        // the next attempt.
        path.suspended = true;
        probe_at_ = now + kProbeInterval;
        if (std::none_of(std::begin(paths_), std::end(paths_), [](const SessionPath& other) { return other.usable(); }))
            blocked_until_ = now + kRefusedWait;
    }
    lose(*flown, why == SendResult::busy);
    flight_.trim();
}

}  // namespace starling::network
