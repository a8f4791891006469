// The handling of a datagram that has arrived for a session: its incarnation, its acknowledgements and its stream bytes.
#include <algorithm>
#include <cstring>

#include "transport/network/session/session.h"

namespace starling::network {

namespace {

constexpr uint64_t kReorder = 3;            ///< later datagrams after which a missing one counts as lost (three in RFC 5681)
constexpr uint32_t kOwedMost = 32;          ///< most datagrams received before an acknowledgement is sent
constexpr uint64_t kOwedBytes = 64 * 1024;  ///< most bytes received from carriers before an acknowledgement is sent
/// Losses of long datagrams in a row, while short ones arrive, after which the path counts as too narrow for them.
constexpr uint8_t kSizeLosses = 12;

uint32_t cost_of(const Flown& flown) { return flown.length + kDatagramCost; }

}  // namespace

bool Session::receive(const Datagram& datagram, int path, Carrier* carrier, uint64_t now) {
    if (dead_ || !right_incarnation(datagram, now)) {
        ++outside_.counters.stale;
        return false;
    }
    const DatagramHeader& header = datagram.header;
    if (waiting()) restart_after_pause(active_at(), now);
    last_received_at_ = now;
    if (!carrier) last_path_ = static_cast<int8_t>(path);
    bool peer_receives = false;
    if (header.target_epoch == epoch_) {
        acknowledged_ = true;
        peer_receives = handle_acks(datagram, now);
    }
    if (header.number != 0) {
        note_echo(header.number, datagram.stream_bytes == 0, now);
        ++owed_.count;
        want_ack(header.flags & datagram_flag::kAckNow || owed_.count >= kOwedMost ? now : now + (1 + header.hold) * kAckDelay);
    }
    if (peer_receives)
        undelivered_since_ = 0;
    else if (waiting() && undelivered_since_ == 0)
        undelivered_since_ = now;
    if (datagram.stream_bytes == 0) return true;
    const bool taken = handle_stream(datagram, carrier, now);
    // An acknowledgement sent from within a delivery covers what was delivered until then, not the packets behind it.
    if (owed_.ack_at == 0 && in_.expected() > owed_.confirmed)
        want_ack(now + (carrier && carrier->by_device() ? kDeviceAckDelay : (1 + header.hold) * kAckDelay));
    return taken;
}

// Records the number of a datagram to echo in the next acknowledgement, which has room for one only. A probe's number is kept even if other
// datagrams follow, because its path is not probed again for a long time. If a second probe arrives, the first is acknowledged at once, so
// that both are answered.
void Session::note_echo(uint32_t number, bool probe, uint64_t now) {
    const bool kept = owed_.echo != 0 && echo_probe_;
    if (kept && !probe) return;
    if (kept) flush_ack(now);
    owed_.echo = number;
    echo_probe_ = probe;
    echo_at_ = now;
}

bool Session::handle_stream(const Datagram& datagram, Carrier* carrier, uint64_t now) {
    const DatagramHeader& header = datagram.header;
    if (carrier) {
        owed_.bytes += datagram.stream_bytes;
        const bool much =
            owed_.bytes >= (carrier->by_device() ? std::max(kOwedBytes, outside_.window / uint64_t{4}) : kOwedBytes);
        const uint64_t delay = carrier->by_device() ? kDeviceAckDelay : std::max(kCarrierAckDelay, header.hold * kAckDelay);
        want_ack(much || header.flags & datagram_flag::kAckNow ? now : now + delay);
    }
    switch (in_.accept(header.offset, datagram.stream, datagram.stream_bytes, *this)) {
        case Reassembly::ReassemblyResult::in_order:
            if (in_.has_holes()) want_ack(now);
            if (!waiting()) undelivered_since_ = 0;
            return true;
        case Reassembly::ReassemblyResult::early:
            ++outside_.counters.out_of_order;
            want_ack(now);
            return true;
        case Reassembly::ReassemblyResult::duplicate:
            ++outside_.counters.duplicates;
            owed_.twice = true;
            want_ack(now);
            // Note the time: a duplicate shows that some or all of our acknowledgements do not arrive.
            if (!waiting()) restart_after_pause(duplicate_at_, now);
            duplicate_at_ = now;
            if (undelivered_since_ == 0) undelivered_since_ = now;
            return true;
        case Reassembly::ReassemblyResult::beyond:
            want_ack(now);
            return true;
        case Reassembly::ReassemblyResult::broken:
            ++outside_.counters.malformed;
            fail(SessionFailure::broken);
            return false;
        case Reassembly::ReassemblyResult::stopped:
            return true;
    }
    return true;
}

// Checks that a datagram is from and for the current streams. An epoch identifies a stream, and a new stream has a later epoch than the one
// before. So datagrams for or from a process that no longer exists are recognized; docs/network.md lists the cases.
bool Session::right_incarnation(const Datagram& datagram, uint64_t now) {
    const DatagramHeader& header = datagram.header;
    if (header.target_epoch != 0 && header.target_epoch != epoch_) {
        // The datagram is for an earlier stream of ours, so reply with the current epoch. Reply only to datagrams that require an answer,
        // or two such replies would trigger each other forever.
        if (header.target_epoch < epoch_ && (header.number != 0 || datagram.stream_bytes > 0)) want_ack(now);
        return false;
    }
    if (header.epoch == peer_epoch_) return true;
    if (header.epoch <= std::max(peer_epoch_, past_epoch_)) return false;
    if (peer_epoch_ != 0) {
        // The peer is not the process that we sent to: data in flight to the earlier one is lost.
        fail(SessionFailure::successor);
        return false;
    }
    peer_epoch_ = header.epoch;
    return true;
}

bool Session::release_to(uint64_t offset) {
    if (offset <= buffer_.begin()) return false;
    if (!lost_.empty()) lost_.remove({0, offset});
    if (!sacked_.empty()) sacked_.remove({0, offset});
    buffer_.release(offset);
    return true;
}

bool Session::handle_acks(const Datagram& datagram, uint64_t now) {
    const DatagramHeader& header = datagram.header;
    if (header.ack > next_) {
        ++outside_.counters.malformed;
        return false;
    }
    bool advanced = release_to(header.ack);
    bool news = advanced;
    for (int i = 0; i < header.ranges; ++i) {
        const SequenceRange range{header.ack + datagram.ranges[i].start,
                                  header.ack + datagram.ranges[i].start + datagram.ranges[i].length};
        if (range.end > next_) break;
        if (range.start < buffer_.begin() || sacked_.covers(range)) continue;
        sacked_.add(range);
        news = true;
    }
    // An acknowledgement sent from within a delivery covers only what was delivered until then. Also release the selectively acknowledged
    // range right behind it. None of it is in flight any more, so if the next acknowledgement were lost, nothing would ask for it.
    if (!sacked_.empty() && sacked_.front().start <= buffer_.begin()) advanced |= release_to(sacked_.front().end);
    if (header.flags & datagram_flag::kTwice) [[unlikely]]
        lost_at_ = lost_before_;
    limit_ = std::max(limit_, header.ack + uint64_t{header.window} * kWindowUnit);
    // Stream offset up to which this acknowledgement lists all ranges. A datagram beyond it may have arrived although its range was left
    // out.
    reported_end_ = header.flags & datagram_flag::kMoreRanges && header.ranges > 0
                        ? header.ack + datagram.ranges[header.ranges - 1].start + datagram.ranges[header.ranges - 1].length
                        : UINT64_MAX;
    if (news) mark_arrived(repeats_ > 0 || !sacked_.empty());
    if (advanced) carried_since_ = now;
    const bool echoed = handle_echo(header, now);
    if (!flight_.empty()) find_losses(now);
    flight_.trim();
    for (SessionPath& path : paths_)
        if (path.backoff == 0 || path.in_flight == 0) path.quiet = false;
    if (advanced && room_refused_) {
        room_refused_ = false;
        room_made_ = true;
    }
    if (buffer_.stored() == 0) waiting_since_ = 0;
    return news || echoed;
}

// Removes arrived data from the records in flight. Without repeats and holes the records are in stream order, and the search ends at the
// first one that has not arrived.
void Session::mark_arrived(bool everything) {
    for (uint32_t n = flight_.first(); n != flight_.next(); ++n) {
        Flown& flown = flight_[n];
        if (!flown.in_flight || flown.length == 0) continue;
        if (flown.end() <= buffer_.begin() || sacked_.covers({std::max(flown.offset, buffer_.begin()), flown.end()})) {
            arrived(flown);
        } else if (!everything) {
            if (flown.offset >= buffer_.begin()) break;
            // Shorten the record of a long stretch on a carrier if only its beginning was acknowledged.
            if (flown.via >= kFirstCarrier) {
                flown.length = static_cast<uint32_t>(flown.end() - buffer_.begin());
                flown.offset = buffer_.begin();
            }
            break;
        }
    }
}

void Session::arrived(Flown& flown) {
    flown.in_flight = false;
    repeats_ -= flown.repeat;
    if (flown.via >= kFirstCarrier) {
        --carried_;
        return;
    }
    SessionPath& path = paths_[flown.via];
    path.window.acknowledged(flown.length, path.full);
    path.in_flight -= cost_of(flown);
    if (path.big_losses > 0) [[unlikely]]
        note_arrival_of_size(path, flown.length);
    // Use only data that was sent once: of repeated data it is unknown which copy arrived.
    if (!flown.repeat) {
        path.best_order = std::max(path.best_order, flown.order);
        path.backoff = 0;
    }
    if (path.in_flight < path.window.bytes() / 2) path.full = false;
}

// Measures the round trip by the echoed number. It identifies a datagram's path and send time, whatever path the acknowledgement took.
bool Session::handle_echo(const DatagramHeader& header, uint64_t now) {
    if (header.echo == 0) return false;
    answered_at_ = now;
    if (carrier_question_ != 0 && static_cast<int32_t>(header.echo - carrier_question_) >= 0) question_carriers(now);
    if (handle_probe_answer(header, now)) return true;
    Flown* const flown = flight_.find(header.echo);
    if (!flown || flown->sent_at == 0 || flown->via >= kFirstCarrier) return false;
    SessionPath& path = paths_[flown->via];
    answered(path, flown->sent_at, uint64_t{header.echo_delay} * kMicrosecond, now);
    path.best_order = std::max(path.best_order, flown->order);
    flown->sent_at = 0;  // each datagram is a sample only once
    if (flown->in_flight && flown->length == 0) {
        path.small_arrived = true;
        flown->in_flight = false;
        path.in_flight -= cost_of(*flown);
    }
    return true;
}

bool Session::handle_probe_answer(const DatagramHeader& header, uint64_t now) {
    for (SessionPath& path : paths_) {
        if (path.probe_sent_at == 0 || path.probe != header.echo) continue;
        answered(path, path.probe_sent_at, uint64_t{header.echo_delay} * kMicrosecond, now);
        path.probe_sent_at = 0;
        path.small_arrived = true;
        return true;
    }
    return false;
}

// Updates a path after an answer to a datagram on it. `held`: ns for which the peer delayed its answer.
void Session::answered(SessionPath& path, uint64_t sent_at, uint64_t held, uint64_t now) {
    // `now` is the time at the beginning of a poll, and the datagram may have been sent and answered since.
    const uint64_t passed = now > sent_at ? now - sent_at : 0;
    path.round_trip.sample(passed > held ? passed - held : 1);
    path.backoff = 0;
    path.suspended = false;
}

// Finds lost datagrams: later ones on the same path have arrived, either three of them, or any after some time (RFC 8985).
void Session::find_losses(uint64_t now) {
    loss_check_at_ = 0;
    const bool one_path =
        std::count_if(std::begin(paths_), std::end(paths_), [](const SessionPath& path) { return path.in_flight > 0; }) == 1;
    for (uint32_t n = flight_.first(); n != flight_.next(); ++n) {
        Flown& flown = flight_[n];
        if (!flown.in_flight || flown.via >= kFirstCarrier) continue;
        const SessionPath& path = paths_[flown.via];
        if (flown.order >= path.best_order) {
            if (one_path) break;
            continue;
        }
        if (flown.end() > reported_end_) continue;
        const uint64_t time = std::max(path.round_trip.smoothed(), path.round_trip.latest());
        const uint64_t late_at = flown.sent_at + time + time / 4 + kMillisecond / 4;
        if (path.best_order - flown.order >= kReorder || late_at <= now) {
            lose(flown, flown.length > 0);  // an unanswered probe is no loss: only the last of several is echoed
            if (flown.length > 0) note_loss(now);
        } else if (loss_check_at_ == 0 || late_at < loss_check_at_)
            loss_check_at_ = late_at;
    }
    flight_.trim();
}

void Session::lose(Flown& flown, bool congestion) {
    flown.in_flight = false;
    repeats_ -= flown.repeat;
    const SequenceRange range{std::max(flown.offset, buffer_.begin()), std::max(flown.end(), buffer_.begin())};
    lost_.add(range);
    if (flown.via >= kFirstCarrier) {
        --carried_;
        return;
    }
    SessionPath& path = paths_[flown.via];
    path.in_flight -= cost_of(flown);
    if (congestion && path.quiet) {
        path.window.collapse(path.next_order);
        path.quiet = false;
    } else if (congestion) {
        path.window.lost(flown.order, path.next_order);
    }
    note_loss_of_size(path, flown.length);
}

/// Returns the length of a datagram with `length` stream bytes.
uint32_t Session::size_of_datagram(uint32_t length) const {
    return length + static_cast<uint32_t>(sizeof(DatagramHeader)) + outside_.seal_bytes;
}

// Records the arrival of a datagram. If it is as long as the longest lost one, the path carries that size.
void Session::note_arrival_of_size(SessionPath& path, uint32_t length) {
    if (size_of_datagram(length) >= path.longest_lost)
        path.big_losses = 0;
    else
        path.small_arrived = true;
}

// Records the loss of a datagram. Losses of all sizes above the least count, as the path may not even carry the size below that of the
// longest lost datagram.
void Session::note_loss_of_size(SessionPath& path, uint32_t length) {
    const uint32_t bytes = size_of_datagram(length);
    if (bytes <= kLeastDatagram || bytes > path.datagram) return;
    if (path.big_losses == 0) {
        path.small_arrived = false;
        path.longest_lost = 0;
    }
    path.longest_lost = std::max(path.longest_lost, bytes);
    if (path.big_losses < kSizeLosses) ++path.big_losses;
    if (path.big_losses < kSizeLosses || !path.small_arrived) return;
    path.big_losses = 0;
    path.datagram = next_smaller_datagram(path.longest_lost);
    path.window.set_datagram(path.datagram);
}

}  // namespace starling::network
