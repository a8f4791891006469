#include "plan/phase_traffic.h"

#include <algorithm>
#include <map>

#include "link/remote.h"
#include "profile/traffic.h"

namespace starling::plan {

using link::Peer;

Peer* peer_of(uint64_t job, uint32_t rank) {
    link::Job* const its = link::job_with_id(job);
    if (!its || its->dead() || !its->mapped() || rank >= its->segment().header().size) return nullptr;
    if (its == link::self().job && rank == link::self().rank) return nullptr;
    Peer* const peer = its->peer(rank);
    // Who has finalized reads nothing any more.
    return peer && !link::has_finalized(*peer) && peer->can(transport::kConnections) ? peer : nullptr;
}

namespace {

/// Of the messages sent in this phase, to whomever they could go.
uint64_t on_connections() {
    uint64_t messages = 0;
    profile::each_traffic(
        [](const profile::Traffic& counted, void* argument) {
            if (peer_of(counted.job, counted.rank))
                *static_cast<uint64_t*>(argument) += counted.messages(profile::Way::connection);
        },
        &messages);
    return messages;
}

}  // namespace

Exchanged PhaseTraffic::end() {
    std::map<Key, Traffic> by_peer;
    profile::each_traffic(
        [](const profile::Traffic& counted, void* argument) {
            const Peer* const peer = peer_of(counted.job, counted.rank);
            const auto sent = static_cast<uint32_t>(std::min<uint64_t>(counted.messages(), UINT32_MAX / 2));
            if (!peer || sent == 0) return;
            const uint64_t late = peer->planned ? counted.messages(profile::Way::base) : 0;
            (*static_cast<std::map<Key, Traffic>*>(argument))[{counted.job, counted.rank}] = {
                {counted.job, counted.rank, sent}, sent, static_cast<uint32_t>(std::min<uint64_t>(late, sent))};
        },
        &by_peer);
    Exchanged exchanged;
    for (const auto& [key, traffic] : by_peer) exchanged.messages += traffic.sent;
    exchanged.on_connections = on_connections();
    add_received(by_peer);
    std::vector<Traffic> all;
    for (const auto& [key, traffic] : by_peer) all.push_back(traffic);
    std::stable_sort(all.begin(), all.end(),
                     [](const Traffic& a, const Traffic& b) { return a.with.priority > b.with.priority; });
    if (all.size() > kMostPartners) all.resize(kMostPartners);
    for (const Traffic& traffic : all) {
        exchanged.partners.push_back(traffic.with);
        const Peer* const peer = peer_of(traffic.with);
        if (peer) exchanged.traffic[is_of(*peer, kHere) ? kHere : kElsewhere].push_back(traffic);
    }
    return exchanged;
}

// The sequence numbers count them anyway.
void PhaseTraffic::add_received(std::map<Key, Traffic>& by_peer) {
    Received now;
    for (size_t i = 0; link::Job* const job = link::job_at(i); ++i)
        job->each_peer([&](const Peer& peer) {
            if (peer.next_receive != 0) now.push_back({{job->address().id, peer.rank}, peer.next_receive});
        });
    std::sort(now.begin(), now.end());
    auto before = received_.begin();
    for (const auto& [key, count] : now) {
        while (before != received_.end() && before->first < key) ++before;
        const bool known = before != received_.end() && before->first == key;
        const uint32_t messages = std::min(count - (known ? before->second : 0), UINT32_MAX / 2);
        if (messages == 0) continue;
        if (const auto found = by_peer.find(key); found != by_peer.end())
            found->second.with.priority += messages;
        else if (peer_of(key.first, key.second))
            by_peer[key].with = {key.first, key.second, messages};
    }
    received_ = std::move(now);
}

}  // namespace starling::plan
