// The poll of an endpoint: handles arrivals, replies to them, and runs timers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/counters.h"
#include "transport/network/datagram/endpoint_state.h"

namespace starling::network {

namespace {
constexpr int kLaneRounds = 1 + Udp::kLanes;  ///< most batches of datagrams in one poll
constexpr uint64_t kRailsInterval = 100 * kMillisecond;
constexpr size_t kMostHeld = 16;
constexpr uint64_t kHoldTime = 1000 * kMillisecond;
}  // namespace

/// Marks the poll as running until its end, also if it throws std::bad_alloc.
struct Endpoint::EndpointState::Polling {
    EndpointState& state;
    explicit Polling(EndpointState& polled) : state(polled) { state.polling = true; }
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;
    ~Polling() { state.polling = false; }
};

bool Endpoint::EndpointState::poll(uint64_t time) {
    forgive(time);
    now = time;
    const Polling mark(*this);
    const uint64_t before = counters.packets_received;
    if (!held.empty()) [[unlikely]]
        deliver_held(time);
    const bool by_ports = verbs && poll_verbs(time);
    for (int round = 0; round < kLaneRounds && !by_ports; ++round) {
        // After a std::bad_alloc in an earlier poll, continue with the datagrams that were not handled.
        if (arrived == 0) arrived = udp.receive();
        for (; taken < arrived; ++taken) {
            ReceivedDatagram& arrival = udp.arrivals()[taken];
            if (!handle(arrival, time)) hold(arrival, time);
            ++totals.datagrams_received;
            totals.bytes_received += arrival.bytes;
        }
        const int count = arrived;
        if (verbs && count > 0) [[unlikely]]
            sockets_brought(time);
        arrived = taken = 0;
        if (count < Udp::kReceiveBatch && !udp.expects()) break;
    }
    room_made = false;
    if (!touched.empty()) answer_all(time);
    if (earliest <= time) run_timers(time);
    if (rails_at <= time) {
        publish();
        follow_rails(time);
        if (verbs) verbs->ports->refresh(time);
    }
    return room_made || counters.packets_received != before || (verbs && std::exchange(verbs->to_group, false));
}

// Excludes a pause of this process from the peers' silence. A process that was stopped or has computed has polled no socket meanwhile, so
// its peers' silence proves nothing. The silence before the pause still counts, so that a process that polls rarely also notices dead
// peers.
void Endpoint::EndpointState::forgive(uint64_t time) {
    const uint64_t usual = timeout / 16;
    const uint64_t away = time > now ? time - now : 0;
    if (away <= usual) [[likely]]
        return;
    for (Session* session = active.front(); session; session = active.next(session)) session->forgive(away - usual, time);
}

// Stores a datagram of a sender that is not known to link/ yet. The sender may end before it is known, and then nothing would retransmit
// the datagram.
void Endpoint::EndpointState::hold(const ReceivedDatagram& arrival, uint64_t time) {
    ++totals.unknown;
    if (held.size() == kMostHeld) return;
    auto* copy = static_cast<std::byte*>(std::aligned_alloc(64, (arrival.bytes + 63) / 64 * 64));
    if (!copy) return;
    std::memcpy(copy, arrival.data, arrival.bytes);
    Held one{arrival, time, std::unique_ptr<std::byte, FreeDeleter>(copy)};
    one.arrival.data = copy;
    held.push_back(std::move(one));
}

void Endpoint::EndpointState::deliver_held(uint64_t time) {
    for (size_t i = 0; i < held.size();) {
        if (!handle(held[i].arrival, time) && time - held[i].since < kHoldTime)
            ++i;
        else
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

bool Endpoint::EndpointState::handle(ReceivedDatagram& arrival, uint64_t time) {
    bool kept = false;
    if (sealing && !arrival.opened && !unseal(arrival, kept)) [[unlikely]]
        return !kept;
    Datagram datagram;
    if (!decode(arrival.data, arrival.bytes, datagram) || datagram.header.key != identity.key ||
        datagram.header.target_rank != identity.rank) {
        ++totals.rejected;
        return true;
    }
    EndpointPeer* const member = member_for(datagram);
    if (!member) return false;
    if (member->key() == 0 && datagram.introduction.key != 0) member->set_key(datagram.introduction.key);
    int path = path_of(*member, arrival);
    if (path < 0 && !arrival.by_verbs) {
        learn(*member, arrival);
        path = path_of(*member, arrival);
    }
    if (path >= 0 && member->path(path).route.rail < rails.count())
        rails[member->path(path).route.rail].bytes_received += arrival.bytes;
    last = member;
    if (touched.empty() || touched.back() != member) touched.push_back(member);
    member->receive(datagram, path, nullptr, time);
    return true;
}

// Returns the sender's session. For an unknown process, or the successor of one whose session was closed, link decides whether to create a
// session.
EndpointPeer* Endpoint::EndpointState::member_for(const Datagram& datagram) {
    const DatagramHeader& header = datagram.header;
    const PeerName name{header.job, header.rank};
    if (last && last->peer == name && !last->dead()) [[likely]]
        return last;
    const auto found = members.find(name);
    if (found != members.end() && (!found->second->dead() || !found->second->is_successor(header))) return found->second.get();
    return static_cast<EndpointPeer*>(upcalls.unknown(upcalls.context, header.job, header.rank, datagram.introduction.key));
}

bool Endpoint::EndpointState::answer_all(uint64_t time) {
    for (size_t i = 0; i < touched.size(); ++i) {
        EndpointPeer& member = *touched[i];
        room_made |= member.fetch_room_made();
        serve(member, time);
    }
    touched.clear();
    return room_made;
}

void Endpoint::EndpointState::run_timers(uint64_t time) {
    // An upcall of a timer may close this session and others, so do not iterate over the list meanwhile.
    for (Session* session = active.front(); session; session = active.next(session))
        if (session->deadline() <= time) touched.push_back(static_cast<EndpointPeer*>(session));
    for (size_t i = 0; i < touched.size(); ++i) touched[i]->on_timer(time);
    touched.clear();
    earliest = UINT64_MAX;
    for (Session *session = active.front(), *next; session; session = next) {
        next = active.next(session);
        const uint64_t at = session->deadline();
        if (at == UINT64_MAX) session->active_hook.unlink();
        earliest = std::min(earliest, at);
    }
}

// Copies the counters to those that tools observe from outside this process, with a delay of up to 0.1 s.
void Endpoint::EndpointState::publish() {
    starling::Counters& shown = starling::counters;
    const EndpointCounters all = sum();
    shown.datagrams_sent = all.datagrams_sent;
    shown.datagrams_received = all.datagrams_received;
    shown.acks_alone = all.acks_alone;
    shown.repeated = all.repeated;
    shown.timeouts = all.timeouts;
    shown.duplicates = all.duplicates;
    shown.out_of_order = all.out_of_order;
    shown.strangers = all.rejected;
    shown.send_busy = all.busy;
    if (verbs) publish_verbs();
}

void Endpoint::EndpointState::follow_rails(uint64_t time) {
    rails_at = time + kRailsInterval;
    ++span;
    if (!rails.refresh()) return;
    udp.enable_interface_info(rails.count() > 1);
    open_doors();
    for (auto& [name, member] : members) {
        if (member->dead()) continue;
        // Announce the change even to idle peers. A process that waits for a peer sends nothing, and the peer would continue to send to the
        // old address.
        find_paths(*member);
        member->announce(time);
        serve(*member, time);
    }
}

bool Endpoint::receive_frame(Session& session, Carrier& carrier, const std::byte* frame, size_t bytes, uint64_t now) {
    Datagram datagram;
    const EndpointIdentity& me = state_->identity;
    if (!decode(frame, bytes, datagram) || datagram.header.key != me.key || datagram.header.target_rank != me.rank ||
        datagram.header.job != session.peer.job || datagram.header.rank != session.peer.rank) {
        ++state_->totals.rejected;
        return false;
    }
    auto& member = static_cast<EndpointPeer&>(session);
    if (member.key() == 0 && datagram.introduction.key != 0) member.set_key(datagram.introduction.key);
    member.receive(datagram, -1, &carrier, now);
    state_->room_made |= member.fetch_room_made();
    if (!member.dead()) state_->serve(member, now);
    return true;
}

}  // namespace starling::network
