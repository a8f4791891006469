#include "plan/phase_traffic.h"

#include <algorithm>
#include <tuple>

#include "link/remote_peer.h"
#include "profile/traffic.h"

namespace starling::plan {

using link::Peer;

namespace {

// Returns whether a peer may have a connection. A process that has called MPI_Finalize no longer reads messages.
bool may_connect(const Peer& peer) {
    const bool own = &peer.job == link::self().job && peer.rank == link::self().rank;
    return !own && !peer.dead && peer.supports(transport::kConnections) && !link::has_finalized(peer);
}

}  // namespace

Peer* peer_of(uint64_t job, uint32_t rank) {
    link::Job* const own = link::self().job;
    link::Job* const its = job == own->address().id ? own : link::job_with_id(job);
    if (!its || its->dead() || !its->mapped() || rank >= its->segment().header().size) return nullptr;
    if (its == own && rank == link::self().rank) return nullptr;
    Peer* const peer = its->peer(rank);
    return peer && may_connect(*peer) ? peer : nullptr;
}

namespace {

uint32_t at_most_half(uint64_t messages) { return static_cast<uint32_t>(std::min<uint64_t>(messages, UINT32_MAX / 2)); }

/// Returns the traffic with one peer. The number of received messages follows from the sequence numbers, so receives need no counter.
PeerTraffic traffic_with(Peer& peer) {
    const uint32_t received = at_most_half(peer.next_receive - peer.received_before);
    peer.received_before = peer.next_receive;
    const bool sends = peer.traffic && peer.traffic->hook.linked();
    if (!sends && received == 0) return {};
    if (const transport::Connector* const by = peer.base->by.connector(); by && sends)
        peer.gains = by->speeds_up(peer.traffic->messages(), peer.traffic->bytes());
    const uint32_t sent = sends ? at_most_half(peer.traffic->messages()) : 0;
    const uint32_t late = sends && peer.planned ? at_most_half(peer.traffic->messages(profile::PathKind::base)) : 0;
    return {{peer.job.address().id, peer.rank, sent + received}, sent, std::min(late, sent)};
}

}  // namespace

ExchangedTraffic end_traffic() {
    struct One {
        PeerTraffic traffic;
        TransportSide side;
    };
    ExchangedTraffic exchanged;
    std::vector<One> all;
    for (size_t i = 0; link::Job* const job = link::job_at(i); ++i)
        job->each_peer([&](Peer& peer) {
            const PeerTraffic traffic = traffic_with(peer);
            if (traffic.with.priority == 0 || !may_connect(peer)) return;
            all.push_back({traffic, is_of(peer, kHere) ? kHere : kElsewhere});
            exchanged.messages += traffic.sent;
            if (traffic.sent > 0) exchanged.on_connections += peer.traffic->messages(profile::PathKind::connection);
        });
    std::sort(all.begin(), all.end(), [](const One& a, const One& b) {
        const auto rank = [](const Partner& with) { return std::tuple(UINT32_MAX - with.priority, with.job, with.rank); };
        return rank(a.traffic.with) < rank(b.traffic.with);
    });
    if (all.size() > kMostPartners) all.resize(kMostPartners);
    exchanged.partners.reserve(all.size());
    for (const One& one : all) {
        exchanged.partners.push_back(one.traffic.with);
        exchanged.traffic[one.side].push_back(one.traffic);
    }
    return exchanged;
}

}  // namespace starling::plan
