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

Exchanged PhaseTraffic::end() {
    Exchanged exchanged;
    profile::each_traffic(
        [](const profile::Traffic& traffic, void* argument) {
            const Peer* const peer = peer_of(traffic.job, traffic.rank);
            const auto messages = static_cast<uint32_t>(std::min<uint64_t>(traffic.messages(), UINT32_MAX / 2));
            if (!peer || messages == 0) return;
            auto& exchanged = *static_cast<Exchanged*>(argument);
            const auto late = peer->planned ? traffic.messages(profile::Way::base) : 0;
            exchanged.sent[is_of(*peer, kHere) ? kHere : kElsewhere].push_back(
                {{traffic.job, traffic.rank, messages}, static_cast<uint32_t>(std::min<uint64_t>(late, messages))});
            exchanged.messages += messages;
            exchanged.on_connections += traffic.messages(profile::Way::connection);
        },
        &exchanged);
    Partners& partners = exchanged.partners;
    for (const auto& side : exchanged.sent)
        for (const Sent& sent : side) partners.push_back(sent.to);
    add_received(partners);
    std::sort(partners.begin(), partners.end(), [](const Partner& a, const Partner& b) {
        return a.priority != b.priority ? a.priority > b.priority : Key(a.job, a.rank) < Key(b.job, b.rank);
    });
    if (partners.size() > kMostPartners) partners.resize(kMostPartners);
    return exchanged;
}

// The sequence numbers count them anyway.
void PhaseTraffic::add_received(Partners& partners) {
    Received now;
    for (size_t i = 0; link::Job* const job = link::job_at(i); ++i)
        job->each_peer([&](const Peer& peer) {
            if (peer.next_receive != 0) now.push_back({{job->address().id, peer.rank}, peer.next_receive});
        });
    std::sort(now.begin(), now.end());
    std::map<Key, Partner*> sent_to;
    for (Partner& partner : partners) sent_to[{partner.job, partner.rank}] = &partner;
    Partners others;
    auto before = received_.begin();
    for (const auto& [key, count] : now) {
        while (before != received_.end() && before->first < key) ++before;
        const bool known = before != received_.end() && before->first == key;
        const uint32_t messages = std::min(count - (known ? before->second : 0), UINT32_MAX / 2);
        if (messages == 0) continue;
        if (const auto found = sent_to.find(key); found != sent_to.end())
            found->second->priority += messages;
        else if (peer_of(key.first, key.second))
            others.push_back({key.first, key.second, messages});
    }
    partners.insert(partners.end(), others.begin(), others.end());
    received_ = std::move(now);
}

}  // namespace starling::plan
