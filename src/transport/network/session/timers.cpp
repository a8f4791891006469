// The timeouts of a session.
#include <algorithm>

#include "transport/network/session/session.h"

namespace starling::network {

namespace {
// A path's timer expires early and often while a peer computes. So conclusions depend on the elapsed time, not on the number of timeouts.
constexpr uint64_t kQuietAfter = 10 * kMillisecond;  ///< time of consecutive timeouts after which a path gets no new data
/// After consecutive timeouts for this time, a path is suspended if the peer answers on another path.
constexpr uint64_t kLeaveAfter = 25 * kMillisecond;
/// After consecutive timeouts for this time, a path is suspended if there is a connection, even if the peer answers on no path.
constexpr uint64_t kCarriersAfter = 250 * kMillisecond;

uint64_t earlier(uint64_t a, uint64_t b) { return b != 0 && b < a ? b : a; }

/// Returns whether the path has a retransmission timer. Preferred paths that do not answer are only probed.
bool is_timed(const SessionPath& path) { return path.present && path.in_flight > 0 && !(path.preferred && path.suspended); }

/// Returns the time between two probes, ns. It grows for a path that has never answered, which may never do so: its ends may be in two
/// networks that are not connected.
uint64_t probe_interval(const SessionPath& path) {
    return path.preferred && !path.proven() ? kProbeInterval << std::min<int>(path.probes, 7) : kProbeInterval;
}
}  // namespace

uint64_t Session::deadline() const {
    if (dead_) return UINT64_MAX;
    uint64_t at = earlier(UINT64_MAX, key_ != 0 ? owed_.ack_at : 0);
    if ((loss_check_at_ | probe_at_ | blocked_until_) != 0) [[unlikely]] {
        at = earlier(at, loss_check_at_);
        at = earlier(at, probe_at_);
        at = earlier(at, blocked_until_);
    }
    for (const SessionPath& path : paths_)
        if (is_timed(path)) at = earlier(at, path.timeout_at(hold_));
    at = earlier(at, carriers_late_at());
    if (waiting()) at = earlier(at, silent_since() + outside_.timeout);
    if (undelivered_since_ != 0) at = earlier(at, undelivered_since() + outside_.timeout);
    return at;
}

void Session::on_timer(uint64_t now) {
    if (dead_) return;
    if (is_abandoned(now)) return;
    if (blocked_until_ != 0 && blocked_until_ <= now) blocked_until_ = 0;
    if (loss_check_at_ != 0 && loss_check_at_ <= now) find_losses(now);
    for (int i = 0; i < kMaxAddresses; ++i)
        if (is_timed(paths_[i]) && paths_[i].timeout_at(hold_) <= now) on_path_timeout(i, now);
    if (const uint64_t late = carriers_late_at(); late != 0 && late <= now) on_carriers_late(now);
    if (probe_at_ != 0 && probe_at_ <= now) probe_suspended(now);
    transmit(now);
}

bool Session::is_abandoned(uint64_t now) {
    if (waiting() && silent_since() + outside_.timeout <= now) {
        fail(SessionFailure::silent);
        return true;
    }
    if (undelivered_since_ == 0 || undelivered_since() + outside_.timeout > now) return false;
    // Fail only if there was a sign in the second half of the interval. While data waits, the peer has polled its socket or sent something;
    // otherwise it may have been computing. While no data waits, the peer has repeated a datagram; otherwise it has our acknowledgement.
    const uint64_t sign = waiting() ? active_at() : duplicate_at_;
    if (sign >= undelivered_since() + outside_.timeout / 2) {
        fail(SessionFailure::unreachable);
        return true;
    }
    undelivered_since_ = 0;
    return false;
}

// A peer that was inactive for half the timeout has computed. When it continues it may send, or repeat data, before it reads the
// acknowledgements in its socket. A peer that reads none of them repeats data at least every kMostTimeout.
void Session::restart_after_pause(uint64_t before, uint64_t now) {
    if (undelivered_since_ != 0 && std::max(before, undelivered_since()) + outside_.timeout / 2 < now) undelivered_since_ = now;
}

// Handles a timeout of a path: no answer arrived in time. Only the oldest datagram is retransmitted, as its acknowledgement shows what else
// is missing. So a peer that computes without polling costs one datagram now and then, and the others stay counted as in flight.
void Session::on_path_timeout(int index, uint64_t now) {
    SessionPath& path = paths_[index];
    ++outside_.counters.timeouts;
    if (path.backoff == 0) {
        path.unanswered_at = now;
        lost_before_ = lost_at_;
    }
    if (path.backoff < UINT8_MAX) ++path.backoff;
    path.last_sent = now;
    path.credit = true;
    lost_at_ = now;
    const uint64_t unanswered = now - path.unanswered_at;
    if (unanswered >= kQuietAfter) path.quiet = true;
    // Also send a short datagram: if it is answered and long ones are not, the path does not carry their size.
    bool bare = path.quiet;
    for (uint32_t n = flight_.first(); n != flight_.next(); ++n) {
        Flown& flown = flight_[n];
        if (!flown.in_flight || flown.via != index) continue;
        bare |= flown.length == 0;  // a probe has no bytes to retransmit
        lose(flown, false);
        break;
    }
    flight_.trim();
    if (bare) send_bare(index, true, now);
    if (unanswered >= kLeaveAfter) consider_leaving(index, now);
}

// Decides whether to suspend a path that does not answer. If the peer answers on another path, this path is at fault. Otherwise the peer
// may be at fault, so the other paths are probed.
void Session::consider_leaving(int index, uint64_t now) {
    SessionPath& path = paths_[index];
    const bool heard = last_received_at_ > path.unanswered_at;
    bool another = carriers_serve() && (heard || now - path.unanswered_at >= kCarriersAfter);
    for (int i = 0; i < kMaxAddresses; ++i) {
        const SessionPath& other = paths_[i];
        if (i == index || !other.usable()) continue;
        another |= heard;
        if (!heard && other.in_flight == 0) send_bare(i, true, now);
    }
    if (!another) return;
    path.suspended = true;
    abandon(static_cast<uint8_t>(index));
    probe_at_ = probe_at_ != 0 ? probe_at_ : now + kProbeInterval;
}

// Returns the path for a request: one that has answered, otherwise any usable one. A path whose first datagrams were all lost has no
// round-trip time, since retransmissions are not measured, yet it may be the only one left.
int Session::asking_path() const {
    int other = -1;
    for (int i = 0; i < kMaxAddresses; ++i) {
        if (!paths_[i].usable()) continue;
        if (paths_[i].proven()) return i;
        if (other < 0) other = i;
    }
    return other;
}

uint64_t Session::carriers_late_at() const {
    if (carried_ == 0) [[likely]]
        return 0;
    const int path = asking_path();
    if (path < 0) return 0;
    // Devices deliver everything that they take. Only after a request is the acknowledgement expected within the usual timeout.
    if (carrier_question_ == 0 && by_devices_alone()) return carried_since_ + kDevicePatience;
    const uint64_t wait = (paths_[path].round_trip.timeout() + std::max(kCarrierAckDelay, hold_))
                          << std::min<int>(carrier_backoff_, 10);
    return carried_since_ + std::min(wait, kMostTimeout);
}

// Asks the peer by datagram about data on carriers that is not acknowledged. Either the peer computes, or its acknowledgement was lost, or
// the connection stalls. A datagram finds out which, since nothing queues in front of it.
void Session::on_carriers_late(uint64_t now) {
    if (carrier_backoff_ < UINT8_MAX) ++carrier_backoff_;
    carried_since_ = now;
    request_ack(now);
    carrier_question_ = flight_.next() - 1;
}

// Asks the carriers whether they stall, and resends the data of those that do. The peer has answered the request, and its acknowledgement
// has been processed: data that is still in flight has not reached it.
void Session::question_carriers(uint64_t now) {
    carrier_question_ = 0;
    carrier_backoff_ = 0;
    carried_since_ = now;
    for (int i = 0; i < kMaxCarriers && carried_ > 0; ++i) {
        Attached& place = carriers_[i];
        if (!place.carrier || place.gone || !place.carrier->stalls(now)) continue;
        place.gone = true;
        abandon(static_cast<uint8_t>(kFirstCarrier + i));
    }
}

void Session::request_acks(uint64_t now) {
    if (idle()) return;
    if (carried_ > 0 && by_devices_alone())
        on_carriers_late(now);
    else if (allows_hold())
        request_ack(now);
}

void Session::request_ack(uint64_t now) {
    const int path = asking_path();
    if (dead_ || key_ == 0 || path < 0) return;
    send_bare(path, true, now);
    outside_.flush();
}

void Session::announce(uint64_t now) {
    for (int i = 0; i < kMaxAddresses; ++i)
        if (key_ != 0 && paths_[i].present && !paths_[i].route.by_verbs()) send_bare(i, true, now);
    outside_.flush();
}

void Session::probe_suspended(uint64_t now) {
    probe_at_ = 0;
    for (int i = 0; i < kMaxAddresses; ++i) {
        SessionPath& path = paths_[i];
        if (!path.present || !path.suspended) continue;
        // Abandon also the data that was in flight when the rail refused a datagram: it must be retransmitted.
        abandon(static_cast<uint8_t>(i));
        send_bare(i, true, now);
        if (path.probes < UINT8_MAX) ++path.probes;
        probe_at_ = earlier(now + probe_interval(path), probe_at_);
    }
}

}  // namespace starling::network
