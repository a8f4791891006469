// Datagrams over InfiniBand and RoCE, sent by verbs ports. They are handled like those from sockets, and sessions prefer verbs paths. UDP
// stays for peers without ports, and for ports that fail.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/counters.h"
#include "transport/network/datagram/endpoint_state.h"

namespace starling::network {

namespace {
/// Polling idle sockets takes a system call, which costs several times the rest of a poll. So if the ports were the last to receive
/// anything, the kernel is asked about all sockets only once per interval. Sockets that have received something are polled for a while.
constexpr uint64_t kSocketsInterval = 50 * kMicrosecond, kSocketsBusy = 1 * kMillisecond;
constexpr int kQueueRounds = 4;  ///< most batches of datagrams in one poll
}  // namespace

void Endpoint::EndpointState::adopt(std::unique_ptr<verbs::Ports> ports) {
    verbs = std::make_unique<VerbsState>();
    verbs->ports = std::move(ports);
    verbs->version = verbs->ports->version();
    verbs->ports->watch(epoll, kPorts);
    // Use the port lists that known peers may have sent before this process had ports.
    if (!members.empty()) follow_ports(now_ns());
}

void Endpoint::EndpointState::send_by_verbs(EndpointPeer& member, const Route& route, uint32_t number, const iovec* parts,
                                            int count) {
    verbs::Port* const port = verbs->ports->port(route.rail - Route::kVerbs);
    verbs::WorkStatus status = verbs::WorkStatus::broken;
    if (port && member.ports && route.port < member.ports->count)
        status = port->send(member.ports->at[route.port], parts, count);
    switch (status) {
        case verbs::WorkStatus::done:
            ++verbs->sent;
            return;
        case verbs::WorkStatus::too_long:
            return member.refused(number, SendResult::too_long, now_ns());
        case verbs::WorkStatus::broken:
            return member.refused(number, SendResult::closed, now_ns());
        case verbs::WorkStatus::busy:
        case verbs::WorkStatus::no_memory:
            break;
    }
    ++verbs->busy;
    if (!member.waits_for_port) {
        // If there is no memory for the entry, the session's timer retries.
        try {
            verbs->waiting.push_back(&member);
            member.waits_for_port = true;
        } catch (const std::bad_alloc&) {}
    }
    member.refused(number, SendResult::busy, now_ns());
}

bool Endpoint::EndpointState::poll_verbs(uint64_t time) {
    VerbsState& mine = *verbs;
    for (int round = 0; round < kQueueRounds && receive_ready(time); ++round) {}
    if (mine.ports->version() != mine.version) follow_ports(time);
    if (mine.ports->fetch_room()) wake_waiting(time);
    if (mine.ports->fetch_peer_event()) mine.sockets_last = false;
    if (udp.expects() || arrived != 0 || mine.sockets_last || time - mine.sockets_at < kSocketsBusy) return false;
    if (time - mine.polled_at < kSocketsInterval) return true;
    mine.polled_at = time;
    (void)ready_sockets();
    return !udp.expects();
}

void Endpoint::EndpointState::sockets_brought(uint64_t time) {
    verbs->sockets_last = true;
    verbs->sockets_at = time;
}

bool Endpoint::EndpointState::receive_ready(uint64_t time) {
    VerbsState& mine = *verbs;
    // After a std::bad_alloc in an earlier poll, continue with the datagrams that were not handled.
    if (mine.came == 0) mine.came = mine.ports->poll();
    for (; mine.taken < mine.came; ++mine.taken) {
        const verbs::Came& one = mine.ports->datagram(mine.taken);
        if (!mine.taking) {
            mine.arrival = {one.event.data, one.event.bytes, one.event.source_queue, 0, one.place, true};
            mine.taking = true;
        }
        if (upcalls.to_group && upcalls.to_group(upcalls.context, one.event.data, one.event.bytes)) [[unlikely]]
            mine.to_group = true;
        else if (!handle(mine.arrival, time))
            hold(mine.arrival, time);
        mine.taking = false;
        mine.ports->return_buffer(one);
    }
    mine.received += static_cast<uint64_t>(mine.came);
    const bool any = mine.came > 0;
    mine.came = mine.taken = 0;
    return any;
}

// Adapts the paths after a port has appeared or disappeared, or has another address.
void Endpoint::EndpointState::follow_ports(uint64_t time) {
    verbs->version = verbs->ports->version();
    for (auto& [name, member] : members) {
        if (member->dead()) continue;
        if (member->ports) find_paths(*member);
        serve(*member, time);
    }
}

void Endpoint::EndpointState::wake_waiting(uint64_t time) {
    std::vector<EndpointPeer*> woken;
    woken.swap(verbs->waiting);
    for (EndpointPeer* const member : woken) {
        member->waits_for_port = false;
        if (member->dead()) continue;
        member->unblock();
        serve(*member, time);
    }
}

void Endpoint::EndpointState::send_ports(EndpointPeer& member, uint64_t time) {
    if (member.dead() || (member.idle() && !member.ports)) return;
    std::byte addresses[PortAddresses::kMostBytes];
    uint32_t bytes = 0;
    for (uint16_t i = 0; i < verbs::Ports::kMost; ++i) {
        if (!verbs->ports->usable(i)) continue;
        const verbs::VerbsAddress address = verbs->ports->port(i)->address();
        std::memcpy(addresses + bytes, &address, sizeof address);
        bytes += static_cast<uint32_t>(sizeof address);
    }
    if (bytes > 0 || member.known_version != 0) {
        packet::Header* const header = member.reserve(bytes);
        if (!header) return;  // no room for the list in the send buffer: it is sent before the next packet to that peer
        header->kind = packet::PacketKind::ports;
        header->operation = 0;
        header->access = {};
        std::memcpy(reinterpret_cast<std::byte*>(header + 1), addresses, bytes);
        member.commit(bytes, time);
    }
    member.known_version = verbs->version;
}

void Endpoint::EndpointState::handle_ports(Session& session, const std::byte* payload, uint32_t bytes) {
    auto& member = static_cast<EndpointPeer&>(session);
    PortAddresses told;
    if (!PortAddresses::decode(payload, bytes, told)) {
        ++totals.rejected;
        return;
    }
    if (!member.ports) member.ports = std::make_unique<PortAddresses>();
    *member.ports = told;
    find_paths(member);
}

int Endpoint::EndpointState::verbs_routes(const EndpointPeer& member, Route* routes, uint32_t* datagrams, int most) const {
    if (!verbs || verbs->ports->count() == 0) return 0;
    verbs::VerbsAddress ours[verbs::Ports::kMost];
    uint32_t longest[verbs::Ports::kMost] = {};
    for (uint16_t i = 0; i < verbs::Ports::kMost; ++i) {
        if (!verbs->ports->usable(i) || verbs->ports->port(i)->datagram_limit() < kLeastVerbsDatagram) continue;
        ours[i] = verbs->ports->port(i)->address();
        longest[i] = verbs->ports->port(i)->datagram_limit();
    }
    PortPair pairs[kMaxAddresses];
    const int count = pair_ports(ours, verbs::Ports::kMost, *member.ports, pairs, most);
    int made = 0;
    for (int i = 0; i < count; ++i) {
        const verbs::VerbsAddress& theirs = member.ports->at[pairs[i].theirs];
        datagrams[made] = std::min(longest[pairs[i].ours], 1u << theirs.mtu_log);
        if (datagrams[made] < kLeastVerbsDatagram) continue;
        routes[made++] = {theirs.queue, pairs[i].theirs, static_cast<uint16_t>(Route::kVerbs + pairs[i].ours)};
    }
    return made;
}

void Endpoint::EndpointState::publish_verbs() {
    starling::Counters& shown = starling::counters;
    const verbs::PortCounters all = verbs->ports->counters();
    shown.verbs_ports = verbs->ports->count();
    shown.verbs_datagrams_sent = verbs->sent;
    shown.verbs_datagrams_received = verbs->received;
    shown.verbs_busy = verbs->busy;
    shown.verbs_registered = all.registered_bytes;
    shown.verbs_buffers = all.queue_bytes;
    shown.verbs_queues = all.queues;
    shown.verbs_queue_memory = all.queue_memory;
    shown.verbs_handles = all.address_handles;
    shown.verbs_transfers = all.transfers;
}

void Endpoint::adopt(std::unique_ptr<verbs::Ports> ports) { state_->adopt(std::move(ports)); }

verbs::Ports* Endpoint::ports() const { return state_->verbs ? state_->verbs->ports.get() : nullptr; }

int Endpoint::verbs_place(const Session& session) const {
    const int path = session.prefers() ? session.preferred_path() : -1;
    return path < 0 ? -1 : session.path(path).route.rail - Route::kVerbs;
}

int Endpoint::likely_verbs_place(const Session& session) const {
    if (const int known = verbs_place(session); known >= 0) return known;
    for (int p = 0; p < kMaxAddresses; ++p)
        if (const SessionPath& path = session.path(p); path.present && path.route.by_verbs())
            return path.route.rail - Route::kVerbs;
    return -1;
}

bool Endpoint::arm() { return !state_->verbs || state_->verbs->ports->arm(); }

void Endpoint::poll_udp_next() {
    if (state_->verbs) state_->verbs->polled_at = 0;
}

void Endpoint::ports_brought() {
    if (state_->verbs) state_->verbs->sockets_last = false;
}

}  // namespace starling::network
