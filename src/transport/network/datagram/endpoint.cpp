#include "transport/network/datagram/endpoint.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <new>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/network/datagram/endpoint_state.h"

namespace starling::network {

namespace {
EndpointPeer& member_of(Session& session) { return static_cast<EndpointPeer&>(session); }
}  // namespace

int Endpoint::open(const EndpointIdentity& self, const EndpointUpcalls& upcalls, Endpoint*& out) {
    auto state = std::make_unique<EndpointState>();
    const int error = state->open(self, upcalls);
    if (error != MPI_SUCCESS) return error;
    out = new Endpoint(state.release());
    return MPI_SUCCESS;
}

int Endpoint::EndpointState::open(const EndpointIdentity& who, const EndpointUpcalls& calls) {
    identity = who;
    upcalls = calls;
    self = {who.job, who.rank};
    key = who.key;
    window = static_cast<uint32_t>(config().ip_window);
    timeout = static_cast<uint64_t>(config().ip_timeout) * kSecond;
    now = now_ns();
    int error = InterfaceFilter::parse(config().ip_interfaces, rail_choice);
    if (error == MPI_SUCCESS && identity.secret) error = open_sealing();
    if (error == MPI_SUCCESS && !rail_choice.any()) error = rails.open(rail_choice);
    if (error == MPI_SUCCESS) error = udp.open(own_address());
    if (error != MPI_SUCCESS) return error;
    udp.on_refused(
        [](void* session, uint32_t number, SendResult why) { static_cast<Session*>(session)->refused(number, why, now_ns()); });
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event readable{};
    readable.events = EPOLLIN;
    readable.data.u64 = Udp::bit_of(Destination::kNoLane);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, udp.fd(), &readable) != 0)
        return fail(MPI_ERR_OTHER, "cannot create an epoll descriptor for the network: %s", std::strerror(errno));
    if (!rail_choice.any()) watch_rails();
    return MPI_SUCCESS;
}

/// Returns the address to bind to. If STARLING_IP_INTERFACES is set, the address is the first usable rail's, so that datagrams from other
/// networks are not accepted. Otherwise it is 0, any address.
uint32_t Endpoint::EndpointState::own_address() const {
    for (uint16_t i = 0; i < rails.count(); ++i)
        if (rails[i].usable) return rails[i].address;
    return 0;
}

// Reads the interfaces into `rails` when the first peer is added, or earlier if STARLING_IP_INTERFACES is set and may be wrong. The kernel
// lists its interfaces under one lock for all processes and network namespaces, which takes a fifth of the startup time.
int Endpoint::EndpointState::open_rails() {
    const int error = rails.open(rail_choice);
    watch_rails();
    return error;
}

void Endpoint::EndpointState::watch_rails() {
    rails_open = true;
    udp.enable_interface_info(rails.count() > 1);
    epoll_event readable{};
    readable.events = EPOLLIN;
    readable.data.u64 = kRails;
    if (rails.fd() >= 0) (void)epoll_ctl(epoll, EPOLL_CTL_ADD, rails.fd(), &readable);
    open_doors();
}

void Endpoint::EndpointState::open_doors() {
    if (rail_choice.any()) return;
    std::vector<uint32_t> usable;
    for (uint16_t i = 0; i < rails.count(); ++i)
        if (rails[i].usable) usable.push_back(rails[i].address);
    for (const uint32_t address : usable) {
        uint32_t bit;
        int fd;
        if (!udp.open_door(address, usable, epoll, bit, fd)) continue;
        epoll_event readable{};
        readable.events = EPOLLIN;
        readable.data.u64 = bit;
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable);
    }
}

// Reads the rails if that was not done yet. Ignore a failure: without rails the kernel's routes are used, and they report unreachable
// addresses.
void Endpoint::EndpointState::need_rails() {
    if (!rails_open && open_rails() != MPI_SUCCESS) clear_failure();
}

// Returns an epoch from the wall clock, so that a process that replaces an earlier one has later epochs.
uint64_t Endpoint::EndpointState::new_epoch() {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const auto time = static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
    return last_epoch = std::max(last_epoch + 1, time);
}

void Endpoint::EndpointState::send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) {
    iovec sealed[2];
    if (sealing) [[unlikely]] {
        seal(member_of(session), parts, count, sealed);
        parts = sealed;
        count = 2;
    }
    Destination where;
    std::memset(&where, 0, sizeof where);
    where.to.sin_family = AF_INET;
    where.to.sin_addr.s_addr = route.remote;
    where.to.sin_port = htons(route.port);
    uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    if (route.rail < rails.count()) {
        Rail& rail = rails[route.rail];
        rail.bytes_sent += bytes;
        // With a single rail the kernel's routing finds the interface, which costs less than naming it.
        if (rails.count() > 1) {
            where.interface = rail.index;
            where.from = rail.address;
        }
    } else if (route.by_verbs()) {
        return send_by_verbs(member_of(session), route, number, parts, count);
    }
    ++totals.datagrams_sent;
    totals.bytes_sent += bytes;
    where.lane = lane_for(member_of(session), where);
    udp.queue(where, &session, number, parts, count);
}

// Pairs our rails with the peer's addresses on the same networks. If none of its addresses is on a network of ours, the kernel's routes
// must reach them.
void Endpoint::EndpointState::find_paths(EndpointPeer& member) {
    need_rails();
    leave_lane(member);
    Route wanted[kMaxAddresses];
    uint32_t datagrams[kMaxAddresses];
    int count = 0;
    uint32_t used = 0;
    const auto add = [&](uint32_t address, uint16_t rail) {
        if (rail != Rails::kRouted) used |= 1u << rail;
        wanted[count++] = {address, member.port, rail};
    };
    const bool known = member.port != 0;
    for (int i = 0; known && i < member.address_count; ++i) {
        const uint16_t rail = rails.towards(member.addresses[i], used);
        // Skip an address that this host has too, such as that of a bridge that exists on every host: it does not lead to the peer.
        if (rail != Rails::kRouted && !rails.is_own(member.addresses[i])) add(member.addresses[i], rail);
    }
    for (int i = 0; known && count == 0 && i < member.address_count; ++i) add(member.addresses[i], Rails::kRouted);
    for (int w = 0; w < count; ++w)
        datagrams[w] = std::max(wanted[w].rail == Rails::kRouted ? 1500 : rails[wanted[w].rail].mtu, 576u) - 28;
    if (member.ports) {
        // Keep up to two UDP paths beside the verbs paths, as the last resort.
        Route by_verbs[kMaxAddresses];
        uint32_t longest[kMaxAddresses];
        const int kept = std::min(count, 2), more = verbs_routes(member, by_verbs, longest, kMaxAddresses - kept);
        count = std::min(count, kMaxAddresses - more);
        std::copy_n(by_verbs, more, wanted + count);
        std::copy_n(longest, more, datagrams + count);
        count += more;
    }

    bool have[kMaxAddresses] = {};
    for (int p = 0; p < kMaxAddresses; ++p) {
        if (!member.path(p).present) continue;
        const Route* const end = wanted + count;
        const Route* const found = std::find(wanted, wanted + count, member.path(p).route);
        if (found == end)
            member.remove_path(p);
        else
            have[found - wanted] = true;
    }
    for (int w = 0; w < count; ++w) {
        int place = -1;
        for (int p = 0; p < kMaxAddresses; ++p) {
            if (have[w] ? member.path(p).present && member.path(p).route == wanted[w] : place < 0 && !member.path(p).present)
                place = p;
        }
        if (place >= 0) member.set_path(place, wanted[w], datagrams[w]);
    }
}

int Endpoint::EndpointState::path_of(const EndpointPeer& member, const ReceivedDatagram& arrival) const {
    int by_address = -1;
    for (int p = 0; p < kMaxAddresses; ++p) {
        const SessionPath& path = member.path(p);
        if (!path.present || path.route.remote != arrival.address) continue;
        if (arrival.by_verbs) {
            if (path.route.rail == Route::kVerbs + arrival.interface) return p;
            continue;
        }
        if (path.route.port != arrival.port || path.route.by_verbs()) continue;
        if (path.route.rail < rails.count() && rails[path.route.rail].index == arrival.interface) return p;
        by_address = p;
    }
    return by_address;
}

// Updates the peer's addresses after a datagram from one that is not known to be the peer's. The seal does not cover the address. So the
// port of a known peer changes only if the datagram is from a new incarnation. Otherwise an attacker who forwards a datagram could redirect
// our traffic.
void Endpoint::EndpointState::learn(EndpointPeer& member, const ReceivedDatagram& arrival) {
    if (member.port != arrival.port) {
        if (sealing && member.port != 0 && !arrival.is_new) return;
        member.port = arrival.port;
        member.address_count = 0;
    }
    const uint32_t *const begin = member.addresses, *const end = begin + member.address_count;
    if (std::find(begin, end, arrival.address) == end) place_for_address(member) = arrival.address;
    find_paths(member);
}

/// Returns the entry to use for a new address: a free one, else that of an address that does not answer, else the last.
uint32_t& Endpoint::EndpointState::place_for_address(EndpointPeer& member) const {
    if (member.address_count < kMaxAddresses) return member.addresses[member.address_count++];
    const auto answers = [&member](uint32_t address) {
        for (int p = 0; p < kMaxAddresses; ++p) {
            const SessionPath& path = member.path(p);
            if (path.usable() && path.backoff == 0 && !path.route.by_verbs() && path.route.remote == address) return true;
        }
        return false;
    };
    uint32_t* const end = member.addresses + kMaxAddresses;
    uint32_t* const silent = std::find_if_not(member.addresses + 0, end, answers);
    return silent == end ? end[-1] : *silent;
}

void Endpoint::EndpointState::watch(EndpointPeer& member) {
    const uint64_t at = member.deadline();
    if (at == UINT64_MAX) return;
    if (!member.active_hook.linked()) active.push_back(&member);
    earliest = std::min(earliest, at);
}

/// Lists the peer as dirty. Returns false if there is no memory for the entry: then the session must send at once.
bool Endpoint::EndpointState::mark_dirty(EndpointPeer& member) {
    if (member.dirty) return true;
    try {
        dirty.push_back(&member);
    } catch (const std::bad_alloc&) { return false; }
    return member.dirty = true;
}

void Endpoint::EndpointState::serve(EndpointPeer& member, uint64_t time) {
    if (batches > 0 && mark_dirty(member)) return;
    if (verbs && member.known_version != verbs->version) [[unlikely]]
        send_ports(member, time);
    member.transmit(time);
    watch(member);
}

uint16_t Endpoint::port() const { return state_->udp.port(); }
const EndpointIdentity& Endpoint::identity() const { return state_->identity; }
int Endpoint::wait_fd() const { return state_->epoll; }

Session* Endpoint::add(job::JobId job, uint32_t rank, uint64_t key, SessionReceiver receiver, void* user) {
    const PeerName name{job, rank};
    const auto found = state_->members.find(name);
    if (found == state_->members.end()) {
        DatagramLock* const lock = state_->sealing ? state_->lock_with(name) : nullptr;
        if (state_->sealing && !lock) return nullptr;
        auto made = std::make_unique<EndpointPeer>(*state_, name, key, receiver, user);
        made->lock = lock;
        return state_->members.emplace(name, std::move(made)).first->second.get();
    }
    EndpointPeer& member = *found->second;
    if (member.dead()) {
        member.revive(key, receiver, user);
        // The port list of the peer's previous incarnation is invalid.
        member.known_version = 0;
        if (member.ports) {
            member.ports.reset();
            state_->find_paths(member);
        }
    } else {
        member.receiver = receiver;
        member.user = user;
        if (key != 0) member.set_key(key);
    }
    return &member;
}

Session* Endpoint::find(job::JobId job, uint32_t rank) const {
    const auto found = state_->members.find(PeerName{job, rank});
    return found == state_->members.end() || found->second->dead() ? nullptr : found->second.get();
}

void Endpoint::set_addresses(Session& session, const uint32_t* addresses, size_t count, uint16_t port) {
    EndpointPeer& member = member_of(session);
    member.address_count = static_cast<uint8_t>(std::min<size_t>(count, kMaxAddresses));
    std::copy_n(addresses, member.address_count, member.addresses);
    member.port = port;
    state_->find_paths(member);
    state_->serve(member, now_ns());
}

void Endpoint::set_key(Session& session, uint64_t key) {
    session.set_key(key);
    state_->serve(member_of(session), now_ns());
}

bool Endpoint::reachable(const Session& session) const { return session.reachable(); }

bool Endpoint::reserve(Session& session, uint32_t bytes, std::byte*& payload, packet::Header*& header) {
    header = session.reserve(bytes);
    if (!header) return false;
    payload = reinterpret_cast<std::byte*>(header + 1);
    return true;
}

bool Endpoint::commit(Session& session, uint32_t bytes) {
    const uint64_t now = now_ns();
    session.commit(bytes, now);
    state_->serve(member_of(session), now);
    return session.all_sent() || state_->batches > 0 || state_->polling;
}

void Endpoint::begin_batch() { ++state_->batches; }

void Endpoint::end_batch() {
    if (--state_->batches > 0 || state_->dirty.empty()) return;
    const uint64_t now = now_ns();
    for (EndpointPeer* member : state_->dirty) {
        member->dirty = false;
        state_->serve(*member, now);
    }
    state_->dirty.clear();
}

uint32_t Endpoint::payload_limit(const Session& session) const { return session.payload_limit(); }

bool Endpoint::poll(uint64_t now) { return state_->poll(now); }

uint32_t Endpoint::ready_sockets() { return state_->ready_sockets(); }

uint32_t Endpoint::EndpointState::ready_sockets() {
    epoll_event events[16];
    const int count = epoll_wait(epoll, events, std::size(events), 0);
    uint32_t came = 0;
    for (int i = 0; i < count; ++i) came |= static_cast<uint32_t>(events[i].data.u64);
    if (came & kRails) rails_at = 0;
    udp.expect(came & ((1u << Udp::kSockets) - 1));
    return came;
}

uint64_t Endpoint::next_deadline() const { return state_->earliest; }

void Endpoint::flush_acks() {
    const uint64_t now = now_ns();
    for (Session* session = state_->active.front(); session; session = state_->active.next(session)) session->flush_ack(now);
    state_->publish();
}

void Endpoint::request_acks() {
    const uint64_t now = now_ns();
    for (Session* session = state_->active.front(); session; session = state_->active.next(session)) {
        session->request_acks(now);
        state_->watch(static_cast<EndpointPeer&>(*session));
    }
    flush_acks();
}

bool Endpoint::idle(const Session& session) const { return session.idle(); }
uint64_t Endpoint::stalled_since(const Session& session) const { return session.stalled_since(); }

void Endpoint::confirm_alive(Session& session, bool looks) { session.confirm_alive(now_ns(), looks); }

SessionFailure Endpoint::failure(const Session& session) const { return session.failure(); }

void Endpoint::close(Session& session) {
    EndpointPeer& member = member_of(session);
    state_->leave_lane(member);
    member.close();
    member.active_hook.unlink();
}

void Endpoint::request_ports(Session& session) {
    session.request_ack(now_ns());
    state_->watch(member_of(session));
}

void Endpoint::forget(job::JobId job) {
    if (state_->last && state_->last->peer.job == job) state_->last = nullptr;
    std::erase_if(state_->touched, [job](const EndpointPeer* member) { return member->peer.job == job && member->dead(); });
    if (state_->verbs)
        std::erase_if(state_->verbs->waiting,
                      [job](const EndpointPeer* member) { return member->peer.job == job && member->dead(); });
    std::erase_if(state_->members, [job](const auto& entry) { return entry.first.job == job && entry.second->dead(); });
    if (state_->sealing) state_->forget_locks(job);
}

uint64_t Endpoint::round_trip(const Session& session) const { return session.round_trip(); }
void* Endpoint::user(const Session& session) const { return session.user; }

bool Endpoint::attach(Session& session, Carrier& carrier) {
    if (!session.can_attach()) return false;
    session.attach(carrier);
    state_->serve(member_of(session), now_ns());
    return true;
}

void Endpoint::detach(Session& session, Carrier& carrier) {
    session.detach(carrier);
    state_->serve(member_of(session), now_ns());
}

void Endpoint::writable(Session& session, Carrier& carrier) {
    session.writable(carrier);
    state_->serve(member_of(session), now_ns());
}

size_t Endpoint::addresses(uint32_t* out, size_t most) const {
    state_->need_rails();
    size_t count = 0;
    for (uint16_t i = 0; i < state_->rails.count() && count < most; ++i)
        if (state_->rails[i].usable) out[count++] = state_->rails[i].address;
    return count;
}

bool Endpoint::route(uint32_t remote, uint32_t& local) const {
    state_->need_rails();
    const uint16_t rail = state_->rails.towards(remote, 0);
    local = rail == Rails::kRouted ? 0 : state_->rails[rail].address;
    return rail != Rails::kRouted || state_->rails.usable() > 0;
}

uint32_t Endpoint::rails_version() const { return state_->rails.version(); }

EndpointCounters Endpoint::counters() const { return state_->sum(); }

EndpointCounters Endpoint::EndpointState::sum() const {
    EndpointCounters all = totals;
    const SessionCounters& inner = counters;
    all.packets_sent = inner.packets_sent;
    all.packets_received = inner.packets_received;
    all.acks_alone = inner.acks_alone;
    all.repeated = inner.repeated;
    all.timeouts = inner.timeouts;
    all.duplicates = inner.duplicates;
    all.out_of_order = inner.out_of_order;
    all.rejected += inner.malformed + udp.truncated_count();
    all.stale += inner.stale;
    all.busy = udp.busy_count();
    return all;
}

size_t Endpoint::rail_counters(RailCounters* out, size_t most) const {
    const Rails& rails = state_->rails;
    for (uint16_t i = 0; i < rails.count() && i < most; ++i) {
        std::memcpy(out[i].name, rails[i].name, sizeof out[i].name);
        out[i].address = rails[i].address;
        out[i].usable = rails[i].usable;
        out[i].bytes_sent = rails[i].bytes_sent;
        out[i].bytes_received = rails[i].bytes_received;
    }
    return rails.count();
}

}  // namespace starling::network
