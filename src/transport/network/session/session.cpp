#include "transport/network/session/session.h"

#include <algorithm>

namespace starling::network {

namespace {
/// Bytes that a peer accepts before it has announced its window; also the least value of STARLING_IP_WINDOW.
constexpr uint64_t kFirstLimit = 128 * 1024;
constexpr uint64_t kNow = 1;  ///< any time in the past, ns
}  // namespace

Session::Session(SessionEnvironment& outside, PeerName its_name, uint64_t key, SessionReceiver its_receiver, void* its_user)
    : peer(its_name),
      receiver(its_receiver),
      user(its_user),
      outside_(outside),
      key_(key),
      epoch_(outside.new_epoch()),
      buffer_(outside.slabs),
      limit_(kFirstLimit),
      in_(outside.window) {}

bool Session::has_path() const {
    return std::any_of(std::begin(paths_), std::end(paths_), [](const SessionPath& path) { return path.present; });
}

void Session::set_path(int index, const Route& route, uint32_t datagram) {
    SessionPath& path = paths_[index];
    datagram = std::clamp(datagram, kLeastDatagram, kMostDatagram);
    if (path.present && path.route == route && path.datagram_most == datagram) return;
    if (!path.present || !(path.route == route)) {
        if (path.present && path.preferred) --preferred_;
        // The numbering continues, so that a record of the previous path at this index is not taken for one of the new path.
        const uint64_t order = path.next_order;
        const uint64_t in_flight = path.in_flight;
        path = SessionPath{};
        path.next_order = order;
        path.best_order = order - 1;
        path.in_flight = in_flight;
        path.route = route;
        path.present = true;
        path.preferred = route.by_verbs();
        if (path.preferred) {
            ++preferred_;
            path.suspended = true;
            probe_at_ = kNow;
        }
    }
    path.datagram = path.datagram_most = datagram;
    path.window.set_datagram(datagram);
    path.window.set_most(outside_.window);
}

void Session::remove_path(int index) {
    if (!paths_[index].present) return;
    paths_[index].present = false;
    if (paths_[index].preferred) --preferred_;
    if (last_path_ == index) last_path_ = -1;
    abandon(static_cast<uint8_t>(index));
}

// Marks everything in flight on a path or carrier for retransmission.
void Session::abandon(uint8_t via) {
    for (uint32_t n = flight_.first(); n != flight_.next(); ++n) {
        Flown& flown = flight_[n];
        if (flown.in_flight && flown.via == via) lose(flown, false);
    }
    flight_.trim();
}

int Session::preferred_path() const {
    for (int i = 0; i < kMaxAddresses; ++i)
        if (paths_[i].preferred && paths_[i].usable()) return i;
    return -1;
}

void Session::attach(Carrier& carrier) {
    for (Attached& place : carriers_) {
        if (place.carrier) continue;
        place = {&carrier, false, false};
        ++carrier_count_;
        device_count_ = static_cast<uint8_t>(device_count_ + carrier.by_device());
        return;
    }
}

void Session::detach(Carrier& carrier) {
    for (int i = 0; i < kMaxCarriers; ++i) {
        if (carriers_[i].carrier != &carrier) continue;
        carriers_[i] = {};
        --carrier_count_;
        device_count_ = static_cast<uint8_t>(device_count_ - carrier.by_device());
        abandon(static_cast<uint8_t>(kFirstCarrier + i));
        return;
    }
}

void Session::writable(Carrier& carrier) {
    for (Attached& place : carriers_)
        if (place.carrier == &carrier) place.busy = false;
}

uint32_t Session::payload_limit() const {
    uint32_t datagram = 0;
    if (carrier_count_ > 0) return kMaxPayload;
    const bool preferred = prefers();
    for (const SessionPath& path : paths_)
        if (path.present && path.preferred == preferred && (datagram == 0 || path.datagram < datagram))
            datagram = path.datagram;
    if (datagram == 0) datagram = 1500 - 28;
    // Reserve room for an introduction and a few ranges, so that a full packet always fits beside them.
    return (datagram - static_cast<uint32_t>(sizeof(DatagramHeader) + sizeof(Introduction) + sizeof(packet::Header)) -
            kRangesWithData * static_cast<uint32_t>(sizeof(AckRange)) - outside_.seal_bytes) &
           ~(kGrain - 1);
}

packet::Header* Session::refuse_room() {
    room_refused_ = true;
    return nullptr;
}

bool Session::fetch_room_made() {
    const bool made = room_made_;
    room_made_ = false;
    return made;
}

bool Session::deliver(const packet::Header& header, const std::byte* payload) {
    if (header.kind == packet::PacketKind::ports) [[unlikely]]
        outside_.handle_ports(*this, payload, header.bytes);
    else
        receiver.sink->deliver(receiver.user, {header, payload});
    ++outside_.counters.packets_received;
    return !dead_;
}

uint64_t Session::silent_since() const { return std::max({waiting_since_, last_received_at_, vouched_at_}); }

uint64_t Session::stalled_since() const {
    if (!waiting()) return 0;
    return std::max(waiting_since_, last_received_at_);
}

void Session::confirm_alive(uint64_t now, bool looks) {
    vouched_at_ = now;
    if (!looks || !waiting()) return;
    restart_after_pause(active_at(), now);
    peer_polled_at_ = now;
    if (undelivered_since_ == 0) undelivered_since_ = now;
}

uint64_t Session::undelivered_since() const { return std::max(undelivered_since_, waiting_since_); }

void Session::forgive(uint64_t away, uint64_t now) {
    vouched_at_ = std::min(silent_since() + away, now);
    if (undelivered_since_ != 0) undelivered_since_ = std::min(undelivered_since() + away, now);
}

uint64_t Session::round_trip() const {
    uint64_t best = 0;
    for (const SessionPath& path : paths_) {
        const uint64_t time = path.round_trip.smoothed();
        if (path.present && time != 0 && (best == 0 || time < best)) best = time;
    }
    return best;
}

uint64_t Session::in_flight() const {
    uint64_t sum = 0;
    for (const SessionPath& path : paths_) sum += path.in_flight;
    return sum;
}

// Begins a new stream, for another incarnation of the peer.
void Session::reset_sending() {
    buffer_.clear(0);
    flight_.clear();
    sacked_.clear();
    lost_.clear();
    next_ = packet_hint_ = 0;
    limit_ = kFirstLimit;
    repeats_ = carried_ = carrier_question_ = 0;
    loss_check_at_ = waiting_since_ = blocked_until_ = lost_at_ = lost_before_ = hold_ = 0;
    acknowledged_ = false;
    for (SessionPath& path : paths_) {
        path.in_flight = 0;
        path.backoff = 0;
        path.suspended = path.quiet = false;
        path.probe_sent_at = 0;
        path.best_order = path.next_order - 1;
    }
    epoch_ = outside_.new_epoch();
}

void Session::close() {
    dead_ = true;
    reset_sending();
    in_.clear();
    probe_at_ = undelivered_since_ = 0;
    owed_ = {};
    for (Attached& place : carriers_) place = {};
    carrier_count_ = device_count_ = 0;
}

void Session::revive(uint64_t key, SessionReceiver new_receiver, void* new_user) {
    dead_ = false;
    failure_ = SessionFailure::none;
    past_epoch_ = std::max(past_epoch_, peer_epoch_);
    peer_epoch_ = 0;
    key_ = key;
    receiver = new_receiver;
    user = new_user;
    last_received_at_ = vouched_at_ = peer_polled_at_ = duplicate_at_ = 0;
}

void Session::fail(SessionFailure why) {
    if (dead_) return;
    close();
    failure_ = why;
    outside_.unreachable(*this);
}

}  // namespace starling::network
