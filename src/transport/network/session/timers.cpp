// What a session does when time has passed.
#include <algorithm>

#include "transport/network/session/session.h"

namespace starling::network {

namespace {
// The timer runs out early and often while a peer computes. What it concludes from that takes time, not a number of timeouts.
constexpr uint64_t kQuietAfter = 10 * kMillisecond;      ///< of timeouts in a row: nothing new is sent
constexpr uint64_t kLeaveAfter = 25 * kMillisecond;      ///< likewise: the path is left, if the peer is heard another way
constexpr uint64_t kCarriersAfter = 250 * kMillisecond;  ///< or by no way, and there is a connection

uint64_t earlier(uint64_t a, uint64_t b) { return b != 0 && b < a ? b : a; }

/// Whether something on it may be late. Preferred paths that do not answer are probed, and nobody is alarmed.
bool is_timed(const Path& path) { return path.present && path.in_flight > 0 && !(path.preferred && path.suspended); }

/// One that has never answered perhaps never will: that may be two networks that are not connected.
uint64_t probe_interval(const Path& path) {
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
    for (const Path& path : paths_)
        if (is_timed(path)) at = earlier(at, path.timeout_at(hold_));
    at = earlier(at, carriers_late_at());
    if (waiting()) at = earlier(at, silent_since() + outside_.timeout);
    if (deaf_since_ != 0) at = earlier(at, deaf_since_ + outside_.timeout);
    return at;
}

void Session::on_timer(uint64_t now) {
    if (dead_) return;
    if (is_given_up(now)) return;
    if (blocked_until_ != 0 && blocked_until_ <= now) blocked_until_ = 0;
    if (loss_check_at_ != 0 && loss_check_at_ <= now) find_losses(now);
    for (int i = 0; i < kMaxAddresses; ++i)
        if (is_timed(paths_[i]) && paths_[i].timeout_at(hold_) <= now) on_path_timeout(i, now);
    if (const uint64_t late = carriers_late_at(); late != 0 && late <= now) on_carriers_late(now);
    if (probe_at_ != 0 && probe_at_ <= now) probe_suspended(now);
    transmit(now);
}

bool Session::is_given_up(uint64_t now) {
    if (waiting() && silent_since() + outside_.timeout <= now) {
        fail(Failure::silent);
        return true;
    }
    if (deaf_since_ == 0 || deaf_since_ + outside_.timeout > now) return false;
    // It looked at its socket all the time, or spoke, which comes to the same; else it may have been computing.
    if (std::max(heard_at_, looked_at_) >= deaf_since_ + outside_.timeout / 2) {
        fail(Failure::deaf);
        return true;
    }
    deaf_since_ = 0;
    return false;
}

// Nothing came back in time. Only the oldest datagram goes again: its answer tells what else is missing. A peer that
// computes and does not look at its socket thus costs one datagram now and then, and what it has got stays counted.
void Session::on_path_timeout(int index, uint64_t now) {
    Path& path = paths_[index];
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
    // A short one besides: if it is answered and long ones are not, they are too long.
    bool bare = path.quiet;
    for (uint32_t n = flight_.first(); n != flight_.next(); ++n) {
        Flown& flown = flight_[n];
        if (!flown.in_flight || flown.via != index) continue;
        bare |= flown.length == 0;  // nothing of it would go again
        lose(flown, false);
        break;
    }
    flight_.trim();
    if (bare) send_bare(index, true, now);
    if (unanswered >= kLeaveAfter) consider_leaving(index, now);
}

// The path does not answer. If the peer is heard it is the path; if not it may be the peer, and the other ways are asked.
void Session::consider_leaving(int index, uint64_t now) {
    Path& path = paths_[index];
    const bool heard = heard_at_ > path.unanswered_at;
    bool another = carriers_serve() && (heard || now - path.unanswered_at >= kCarriersAfter);
    for (int i = 0; i < kMaxAddresses; ++i) {
        const Path& other = paths_[i];
        if (i == index || !other.usable()) continue;
        another |= heard;
        if (!heard && other.in_flight == 0) send_bare(i, true, now);
    }
    if (!another) return;
    path.suspended = true;
    give_up(static_cast<uint8_t>(index));
    probe_at_ = probe_at_ != 0 ? probe_at_ : now + kProbeInterval;
}

// One that has answered; else one that never did, but as far as anybody knows might. Where all that was ever sent on it was lost once
// it has no round trip (answers to what was repeated measure none), and yet nothing else could ask.
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
    // What devices have taken arrives. Once it was asked for it should come.
    if (carrier_question_ == 0 && by_devices_alone()) return carried_since_ + kDevicePatience;
    const uint64_t wait = (paths_[path].round_trip.timeout() + std::max(kCarrierAckDelay, hold_))
                          << std::min<int>(carrier_backoff_, 10);
    return carried_since_ + std::min(wait, kMostTimeout);
}

// What carriers took is not acknowledged. The peer computes, or its acknowledgement was lost, or the connection stalls: a
// datagram finds out, which nothing can hold up.
void Session::on_carriers_late(uint64_t now) {
    if (carrier_backoff_ < UINT8_MAX) ++carrier_backoff_;
    carried_since_ = now;
    ask(now);
    carrier_question_ = flight_.next() - 1;
}

// The peer has answered the question, and its answer has been taken: what is still under way did not get there.
void Session::question_carriers(uint64_t now) {
    carrier_question_ = 0;
    carrier_backoff_ = 0;
    carried_since_ = now;
    for (int i = 0; i < kMaxCarriers && carried_ > 0; ++i) {
        Attached& place = carriers_[i];
        if (!place.carrier || place.gone || !place.carrier->stalls(now)) continue;
        place.gone = true;
        give_up(static_cast<uint8_t>(kFirstCarrier + i));
    }
}

void Session::request_acks(uint64_t now) {
    if (idle()) return;
    if (carried_ > 0 && by_devices_alone())
        on_carriers_late(now);
    else if (allows_hold())
        ask(now);
}

void Session::ask(uint64_t now) {
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
        Path& path = paths_[i];
        if (!path.present || !path.suspended) continue;
        // What was under way as it was refused.
        give_up(static_cast<uint8_t>(i));
        send_bare(i, true, now);
        if (path.probes < UINT8_MAX) ++path.probes;
        probe_at_ = earlier(now + probe_interval(path), probe_at_);
    }
}

}  // namespace starling::network
