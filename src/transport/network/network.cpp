#include "transport/network/network.h"

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/reserve.h"
#include "mpi.h"
#include "transport/verbs/plugin.h"

namespace starling::network {

namespace {

/// Numbers of consecutive polls that may skip the sockets: kSkipBusy while other transports deliver packets, kSkipQuiet while nothing
/// arrives and the last packet arrived over another transport.
constexpr uint32_t kSkipBusy = 16, kSkipQuiet = 4;
/// Number of consecutive polls that may skip connections (or datagrams) while only the other of the two has delivered anything for the last
/// kBusyNs.
constexpr uint32_t kSkipOther = 8;
constexpr uint64_t kBusyNs = 1'000'000;
constexpr uint64_t kDevicesInterval = 1'000'000'000;

/// Limits on packets that wait because the send window is full: their number, and the age of the first. Beyond these limits reserve()
/// refuses until the next poll. Below them packets may wait, so that several are sent together.
constexpr uint32_t kMostHeldBack = 64;
constexpr uint64_t kHoldBackNs = 1'000'000;

job::PortWord word_of(const transport::ProcessAddress& process) {
    return job::PortWord::of(process.segment->port(process.rank).load(std::memory_order_acquire));
}

const job::HostEntry& host_of(const transport::ProcessAddress& process) {
    return process.segment->host(process.segment->host_of(process.rank));
}

/// Returns the number of the host's addresses. The process that fills in a host's entry writes `addresses` last, hence the acquire.
uint32_t addresses_of(const job::HostEntry& host) { return __atomic_load_n(&host.addresses, __ATOMIC_ACQUIRE); }

bool is_known(const transport::ProcessAddress& process) {
    return word_of(process).port != 0 && addresses_of(host_of(process)) != 0;
}

}  // namespace

bool Network::Bringer::busy(uint64_t now) const { return now - last < kBusyNs; }

bool Network::Bringer::due(uint64_t now, const Bringer& other, uint64_t deadline) {
    return busy(now) || !other.busy(now) || ++passed >= kSkipOther || deadline <= now;
}

bool Network::Bringer::check_due(uint64_t now, bool any) {
    passed = 0;
    if (any) last = now;
    return any;
}

// Functions of the paths.

NetworkPath::NetworkPath(Network& by, const transport::ProcessAddress& to, void* user) : transport::Path(by, to, user) {}

Network& NetworkPath::network() const { return static_cast<Network&>(by); }

bool NetworkPath::reserve(uint32_t bytes, transport::PacketSlot& slot) {
    if (!session_ || bytes > kTraits.payload) return false;
    Endpoint& endpoint = *network().endpoint_;
    // Accept a packet only when it can be sent: a completed send must not wait here while the program computes or blocks elsewhere.
    if (port_ == 0 && !endpoint.reachable(*session_)) [[unlikely]]
        return false;
    // A program that only sends would never poll. It would then not process the acknowledgements that make room for the waiting packets.
    if (network().must_poll_) [[unlikely]]
        return false;
    slot.path = this;
    return endpoint.reserve(*session_, bytes, slot.payload, slot.header);
}

void NetworkPath::commit(transport::PacketSlot&, uint32_t bytes) {
    if (!network().endpoint_->commit(*session_, bytes)) [[unlikely]]
        network().note_held_back();
    const bool by_wire = uses_wire();
    if (by_wire && wire_->rc) {
        counters.messages_rc += 1;
        counters.bytes_rc += bytes;
        return;
    }
    if (!by_wire && session_->prefers()) [[unlikely]] {
        counters.messages_verbs += 1;
        counters.bytes_verbs += bytes;
        return;
    }
    (by_wire ? counters.messages_tcp : counters.messages_udp) += 1;
    (by_wire ? counters.bytes_tcp : counters.bytes_udp) += bytes;
}

void Network::note_held_back() {
    const uint64_t now = now_ns();
    if (held_back_++ == 0) held_back_at_ = now;
    must_poll_ = held_back_ >= kMostHeldBack || now - held_back_at_ >= kHoldBackNs;
}

bool NetworkPath::idle() const { return !session_ || network().endpoint_->idle(*session_); }

uint32_t NetworkPath::fragment_limit() const {
    return session_ ? std::min(network().endpoint_->payload_limit(*session_), kTraits.payload) : kTraits.payload;
}

void NetworkPath::close() {
    if (!session_) return;
    detach_wire();
    network().endpoint_->close(*session_);
    session_ = nullptr;
    std::erase(network().unplaced_, this);
}

uint64_t Network::silent_since(const transport::Path& path) const {
    const auto& to = static_cast<const NetworkPath&>(path);
    if (!to.session_) return 0;
    return to.port_ == 0 ? 1 : endpoint_->stalled_since(*to.session_);
}

void Network::confirm_alive(transport::Path& path, bool looks) {
    auto& to = static_cast<NetworkPath&>(path);
    if (!to.session_) return;
    place(to);
    if (endpoint_->stalled_since(*to.session_) != 0) endpoint_->confirm_alive(*to.session_, looks);
}

// Functions of the network.

int Network::open(const transport::ProcessAddress& self, transport::Sink& sink, Network*& out) {
    std::unique_ptr<Network> made(new Network(self, sink));
    const job::NetworkSecret& secret = self.segment->header().network_secret;
    if (config().encryption && !secret)
        return fail(
            MPI_ERR_OTHER,
            "STARLING_ENCRYPTION=on is set here, but not where this job was started: set it for mpiexec, or for `starling "
            "daemon start`; jobs that another manager starts on several hosts can't encrypt");
    const EndpointIdentity identity{self.job(), self.rank, self.segment->header().key, secret};
    std::unique_ptr<verbs::Ports> ports;
    if (const int error = verbs::Ports::open(ports)) return error;
    if (const int error = Endpoint::open(identity, made->upcalls(), made->endpoint_)) return error;
    if (config().verbs != VerbsUse::off && !ports && !verbs::has_device()) made->devices_at_ = now_ns() + kDevicesInterval;
    if (ports) made->adopt(std::move(ports));
    out = made.release();
    out->announce({.state = job::PortWord::running});
    return MPI_SUCCESS;
}

void Network::adopt(std::unique_ptr<verbs::Ports> ports) {
    ports->listen(*this);
    endpoint_->adopt(std::move(ports));
}

// Checks for verbs devices: a host that has none now may get one later.
void Network::find_devices(uint64_t now) {
    devices_at_ = now + kDevicesInterval;
    if (!verbs::has_device()) return;
    devices_at_ = UINT64_MAX;
    std::unique_ptr<verbs::Ports> ports;
    if (verbs::Ports::open(ports) != MPI_SUCCESS) clear_failure();
    if (ports) adopt(std::move(ports));
}

EndpointUpcalls Network::upcalls() {
    EndpointUpcalls all;
    all.context = this;
    all.unknown = [](void* context, job::JobId job, uint32_t rank, uint64_t key) {
        return static_cast<Network*>(context)->create_session(job, rank, key);
    };
    all.secret = [](void* context, job::JobId job, uint32_t rank) -> const job::NetworkSecret* {
        const job::JobSegment* const segment = static_cast<Network*>(context)->sink_.find_segment(job);
        return segment && rank < segment->header().size ? &segment->header().network_secret : nullptr;
    };
    all.to_group = [](void* context, const std::byte* data, uint32_t bytes) {
        const auto& groups = static_cast<Network*>(context)->groups_;
        return groups && groups->handle_from_port(data, bytes);
    };
    all.unreachable = [](void* user) {
        auto& path = *static_cast<NetworkPath*>(user);
        path.network().lose(path);
    };
    return all;
}

void Network::announce(job::PortWord state) {
    state.port = endpoint_->port();
    self_.segment->port(self_.rank).store(state.word());
}

int Network::attach(const transport::ProcessAddress& to, void* user, transport::Path*& out) {
    make_room(unplaced_);
    if (!is_known(to)) sink_.locate(user);
    auto path = std::make_unique<NetworkPath>(*this, to, user);
    path->session_ = endpoint_->add(to.job(), to.rank, 0, {&sink_, user}, path.get());
    if (!path->session_ && self_.segment->header().network_secret && !to.segment->header().network_secret)
        return fail(MPI_ERR_OTHER,
                    "rank %u on host %s belongs to a job without STARLING_ENCRYPTION=on, but this job has it; "
                    "start both jobs with the same setting",
                    to.rank, host_of(to).name);
    if (!path->session_)
        return fail(MPI_ERR_OTHER, "no memory for a session with rank %u on host %s", to.rank, host_of(to).name);
    if (!place(*path)) unplaced_.push_back(path.get());
    out = path.release();
    return MPI_SUCCESS;
}

void Network::detach(transport::Path& path) {
    auto& mine = static_cast<NetworkPath&>(path);
    if (mine.wire_) release_slot(mine);
    mine.close();
    delete &mine;
}

/// Passes the process's addresses and port to the session if they are known and the port is new. Returns whether they are known.
bool Network::place(NetworkPath& path) {
    const job::HostEntry& host = host_of(path.to);
    const job::PortWord word = word_of(path.to);
    if (!is_known(path.to)) return false;
    if (path.port_ == word.port) return true;
    path.port_ = word.port;
    endpoint_->set_key(*path.session_, host.key);
    endpoint_->set_addresses(*path.session_, host.ipv4, std::min(addresses_of(host), job::HostEntry::kMost), word.port);
    return true;
}

bool Network::place_paths() {
    return std::erase_if(unplaced_, [this](NetworkPath* path) { return place(*path); }) > 0;
}

// Returns the session for an unknown sender, nullptr if the sender's job is not known yet. The endpoint then keeps the datagram and calls
// this again at every poll.
Session* Network::create_session(job::JobId job, uint32_t rank, uint64_t key) {
    bool later = false;
    transport::Path* const met = sink_.on_unknown_sender({{job, 0, 0, 0}, rank}, later);
    if (!met || &met->by != this) return nullptr;
    Session* const session = static_cast<NetworkPath*>(met)->session_;
    if (session && key != 0) endpoint_->set_key(*session, key);
    return session;
}

void Network::lose(NetworkPath& path) {
    const SessionFailure failure = endpoint_->failure(*path.session_);
    const uint16_t port = path.port_;
    const uint32_t rank = path.to.rank;
    const char* const host = host_of(path.to).name;
    path.close();
    switch (failure) {
        case SessionFailure::unreachable:
            fail(MPI_ERR_PROC_ABORTED,
                 "rank %u on host %s is alive and waits, but nothing sent to its UDP port %u has been acknowledged for %d s: "
                 "let UDP datagrams through the firewalls of both hosts, or choose other networks with "
                 "STARLING_IP_INTERFACES",
                 rank, host, port, static_cast<int>(config().ip_timeout));
            break;
        case SessionFailure::successor:
            fail(MPI_ERR_PROC_ABORTED,
                 "rank %u on host %s has ended: datagrams now arrive from a newer process that has its "
                 "rank",
                 rank, host);
            break;
        default:
            fail(MPI_ERR_PROC_ABORTED,
                 "rank %u on host %s can't be reached any more: nothing has arrived from it for %d s (STARLING_IP_TIMEOUT)",
                 rank, host, static_cast<int>(config().ip_timeout));
    }
    sink_.failed(path.user);
}

int Network::join(const transport::GroupName& name, transport::DatagramHandler& audience,
                  std::unique_ptr<transport::MulticastMembership>& out) {
    if (!groups_) {
        auto made = std::make_unique<GroupSockets>(endpoint_->wait_fd(), Endpoint::kGroups, endpoint_->ports());
        if (const int error = made->open()) return error;
        groups_ = std::move(made);
    }
    return groups_->join(name, audience, out);
}

// Returns a fixed limit: most networks have Ethernet's MTU. So members with different MTUs need no agreement, and no datagram exceeds what
// a link carries.
uint32_t Network::payload() const { return GroupSockets::kPayload; }

bool Network::poll(PollUrgency look) {
    held_back_ = 0;
    must_poll_ = false;
    bool any = check_devices(look);
    // Another thread sleeps on the descriptor, and this poll may have taken the event that was to wake it. So arm it again.
    for (int tries = 0; asleep_ > 0 && tries < static_cast<int>(kSkipBusy) && !endpoint_->arm(); ++tries)
        any |= poll_datagrams(now_ns());
    return any;
}

bool Network::arm() {
    if (endpoint_->arm()) {
        ++asleep_;
        return true;
    }
    // The next poll must not skip datagrams.
    skipped_ = kSkipBusy;
    by_datagram_.passed = kSkipOther;
    return false;
}

bool Network::check_devices(PollUrgency look) {
    const uint64_t now = now_ns();
    const bool by_ring = rc_ && rc_->rings() > 0 && poll_rings(now);
    return poll_descriptors(look, now) || by_ring;
}

bool Network::poll_descriptors(PollUrgency look, uint64_t now) {
    if (look == PollUrgency::now) {
        endpoint_->poll_udp_next();
        bool any = poll_wires(now);
        any |= groups_ && groups_->poll(now);
        return poll_datagrams(now) || any;
    }
    if (woken_) return poll_ready(now);
    const bool busy = look == PollUrgency::busy;
    if (++skipped_ < (busy ? kSkipBusy : skip_quiet_)) return false;
    skipped_ = 0;
    bool any = false;
    if (by_wire_.due(now, by_datagram_, wires_deadline())) any |= by_wire_.check_due(now, poll_wires(now));
    if (by_datagram_.due(now, by_wire_, endpoint_->next_deadline())) any |= by_datagram_.check_due(now, poll_datagrams(now));
    if (groups_ && by_group_.due(now, by_datagram_, UINT64_MAX)) any |= by_group_.check_due(now, groups_->poll(now));
    if (any)
        skip_quiet_ = 1;
    else if (busy)
        skip_quiet_ = kSkipQuiet;
    if (!unplaced_.empty()) [[unlikely]]
        any |= place_paths();
    return any;
}

// Polls every source that woke the thread, once. The thread may sleep again soon, and a source that was skipped would wake it again.
bool Network::poll_ready(uint64_t now) {
    woken_ = false;
    skipped_ = 0;
    skip_quiet_ = 1;
    const uint32_t came = endpoint_->ready_sockets();
    bool any = false;
    if (came & Endpoint::kWires || wires_deadline() <= now) any |= by_wire_.check_due(now, poll_wires(now));
    if (came & Endpoint::kOwn || endpoint_->next_deadline() <= now) any |= by_datagram_.check_due(now, poll_datagrams(now));
    if (came & Endpoint::kGroups) any |= by_group_.check_due(now, groups_->poll(now));
    if (!unplaced_.empty()) [[unlikely]]
        any |= place_paths();
    return any;
}

uint64_t Network::next_deadline() const { return std::min(endpoint_->next_deadline(), wires_deadline()); }

}  // namespace starling::network
