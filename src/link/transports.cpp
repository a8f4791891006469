#include "link/transports.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/state.h"
#include "link/address_lookup.h"
#include "link/manager.h"
#include "link/remote_peer.h"
#include "transport/batch.h"
#include "transport/failure_detection.h"
#include "transport/network/network.h"

namespace starling::link {

namespace {

Peer& peer_of(void* user) { return *static_cast<Peer*>(user); }

/// The sink of all transports: receives their packets and events, and forwards them.
class Above final : public transport::Sink {
  public:
    void deliver(void* user, const Packet& packet) override { dispatch(peer_of(user), packet); }
    transport::Path* on_unknown_sender(const transport::UnknownSender& caller, bool& later) override;
    const job::JobSegment* find_segment(job::JobId id) override;
    void failed(void* user) override {
        const Peer& peer = peer_of(user);
        notify_abandoned(peer.job, peer.rank);
        fail_peer(peer_of(user));
    }
    void wake() override {
        if (threads_at_once()) job::ring(shm::SegmentRegion(self().job->segment().region(self().rank)).doorbell());
    }
    void connection(void* user, transport::ConnectionEvent news) override { on_news(peer_of(user), news); }
    void locate(void* user) override {
        if (const Peer& peer = peer_of(user); !peer.dead) link::locate(peer.job, peer.rank);
    }
    void send(void* user, packet::PacketKind kind, const void* payload, uint32_t bytes) override {
        if (kind == packet::PacketKind::accept) return send_about_connection(peer_of(user), kind, payload, bytes);
        send_control(peer_of(user), kind, payload, bytes);
    }
    std::byte* target(void* user, const transport::StreamFragment& fragment, uint64_t done, uint64_t bytes) override {
        return upcalls.target(peer_of(user), fragment, done, bytes);
    }
    void unpack(void* user, const transport::StreamFragment& fragment, uint64_t done, const std::byte* data,
                uint64_t bytes) override {
        upcalls.unpack(peer_of(user), fragment, done, data, bytes);
    }
    void on_fragment(void* user, const transport::StreamFragment& fragment) override {
        upcalls.fragment(peer_of(user), fragment);
    }

  private:
    bool may_query();
    uint64_t queried_at_ = 0;  ///< time of the last request to the daemon about an unknown job, ns
    bool reported_unmapped_ = false;
};

/// Limits the rate of requests to the daemon, because a packet from an unknown job is found again at every poll.
bool Above::may_query() {
    const uint64_t now = now_ns();
    if (now - queried_at_ <= 1'000'000) return false;
    queried_at_ = now;
    return true;
}

const job::JobSegment* Above::find_segment(job::JobId id) {
    Job* const job = job_with_id(id);
    if (job && job->mapped()) return &job->segment();
    if (may_query()) start_resolving(id);
    return nullptr;
}

transport::Path* Above::on_unknown_sender(const transport::UnknownSender& caller, bool& later) {
    Job* job = job_with_id(caller.job.id);
    const bool knows_segment = caller.job.owner_pid != 0;
    if (!knows_segment && (!job || !job->mapped())) {
        if (may_query()) start_resolving(caller.job.id);
        later = true;
        return nullptr;
    }
    if (!job) job = find_job(caller.job);
    if (!knows_segment && (job->dead() || caller.rank >= job->segment().header().size)) return nullptr;
    Peer* const peer = job->peer(caller.rank);
    later = !job->mapped() && !job->dead();
    if (later && !reported_unmapped_) {
        // The job's segment could not be mapped for lack of a descriptor or of address space, which may be temporary. The user must see why
        // the packet is not delivered.
        std::fprintf(stderr,
                     "starling: rank %u: %.*s. A message of that job, and all messages after it in the inbox, are not received "
                     "until the job's shared memory can be mapped\n",
                     self().rank, static_cast<int>(failure_text().size()), failure_text().data());
        reported_unmapped_ = true;
    }
    if (later) clear_failure();
    return peer ? peer->base : nullptr;
}

struct Transports {
    static constexpr int kMost = 2;
    Above above;
    shm::SharedMemory memory;
    network::Network* network = nullptr;
    transport::Transport* all[kMost] = {};  ///< the transports in use, the cheapest first
    int count = 0;

    explicit Transports(const transport::ProcessAddress& me) : memory(me, above) { use(memory); }
    void use(transport::Transport& one) {
        all[count++] = &one;
        std::sort(all, all + count, [](const transport::Transport* a, const transport::Transport* b) {
            return a->traits.latency_ns < b->traits.latency_ns;
        });
    }
    transport::Transport* const* begin() const { return all; }
    transport::Transport* const* end() const { return all + count; }
};
STARLING_STATE Transports* transports = nullptr;  ///< the process's transports, never destroyed

using Deadline = uint64_t (*)();
STARLING_STATE Deadline deadline_above = nullptr;

transport::ProcessAddress process_of(Job& job, uint32_t rank) { return {&job.segment(), rank}; }

}  // namespace

void start_transports() { transports = new Transports(process_of(*self().job, self().rank)); }

int open_network() {
    if (transports->network) return MPI_SUCCESS;
    const int error = network::Network::open(process_of(*self().job, self().rank), transports->above, transports->network);
    if (!error) transports->use(*transports->network);
    return error;
}

transport::Transport* network() { return transports->network; }

shm::SharedMemory& shared_memory() { return transports->memory; }

int attach(Peer& peer) {
    const transport::ProcessAddress process = process_of(peer.job, peer.rank);
    if (!transports->memory.reaches(process))
        if (const int error = open_network()) return error;
    for (transport::Transport* transport : *transports) {
        if (!transport->reaches(process)) continue;
        if (transport == &transports->memory)
            peer.base = &peer.shm_path;
        else if (const int error = transport->attach(process, &peer, peer.base))
            return error;
        if (peer.dead)
            peer.base->close();
        else if (transport->failure_detection())
            watch_liveness(peer);
        return MPI_SUCCESS;
    }
    return fail(MPI_ERR_INTERN, "no transport reaches rank %u", peer.rank);
}

bool poll_transports(transport::Transport::PollUrgency look) {
    using PollUrgency = transport::Transport::PollUrgency;
    // Most processes have only the shared-memory transport, so it is polled without a virtual call.
    bool any = transports->memory.poll(look);
    if (transports->count == 1) [[likely]]
        return any;
    for (transport::Transport* transport : *transports)
        if (transport != &transports->memory)
            any |= transport->poll(any && look == PollUrgency::quiet ? PollUrgency::busy : look);
    return any;
}

bool recover() {
    bool any = false;
    for (transport::Transport* transport : *transports) any |= transport->recover();
    return any;
}

void forget_in_transports(const Job& job) {
    for (transport::Transport* transport : *transports) transport->forget(job.address().id);
}

int wait_descriptor() { return transports->network ? transports->network->wait_fd() : -1; }

bool arm() { return !transports->network || transports->network->arm(); }

void disarm() {
    if (transports->network) transports->network->disarm();
}

void woken() {
    if (transports->network) transports->network->woken();
}

void add_deadline(Deadline when) { deadline_above = when; }

uint64_t next_deadline() {
    uint64_t first = deadline_above ? deadline_above() : UINT64_MAX;
    for (const transport::Transport* transport : *transports) first = std::min(first, transport->next_deadline());
    return first;
}

void publish_state(job::PortWord state) {
    for (transport::Transport* transport : *transports) transport->announce(state);
}

void flush_transports() {
    for (transport::Transport* transport : *transports)
        if (transport::Batching* const batching = transport->batching()) batching->flush();
}

void request_all_acks() {
    for (transport::Transport* transport : *transports)
        if (transport::Batching* const batching = transport->batching()) batching->request_acks();
}

}  // namespace starling::link
