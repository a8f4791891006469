#include "plan/plan_review.h"

#include <algorithm>

namespace starling::plan {

uint64_t OnDemand::phase(std::span<const PeerTraffic> traffic, const DemandPolicy& terms) {
    struct Direct {
        uint64_t worth, sent;
        PhaseKey key;
    };
    std::vector<Direct> direct;
    const uint32_t least = std::max(terms.threshold, open_.size() < terms.limit ? 0 : terms.cost);
    for (const auto& [with, sent, late] : traffic) {
        const PhaseKey key(with.job, with.rank);
        const bool open = std::binary_search(open_.begin(), open_.end(), key);
        // Without a plan, opening is assumed to take as many messages as with it. If the plan never opened this connection (late == sent),
        // that number is unknown.
        const uint32_t opening = late < sent ? late : 0;
        const uint32_t before = open ? 0 : std::max(least, opening);
        if (with.priority > before) direct.push_back({with.priority - before, sent > before ? sent - before : 0, key});
    }
    std::stable_sort(direct.begin(), direct.end(), [](const Direct& a, const Direct& b) { return a.worth > b.worth; });
    if (direct.size() > terms.limit) direct.resize(terms.limit);
    uint64_t messages = 0;
    std::vector<PhaseKey> now;
    for (const Direct& one : direct) {
        messages += one.sent;
        now.push_back(one.key);
    }
    // The remaining slots are not needed for other peers, so connections of the last phase stay open in them.
    for (const PhaseKey& key : open_) {
        if (now.size() >= terms.limit) break;
        if (std::find(now.begin(), now.end(), key) == now.end()) now.push_back(key);
    }
    std::sort(now.begin(), now.end());
    open_ = std::move(now);
    return messages;
}

bool PlanReview::phase(uint64_t messages, uint64_t on_connections, uint64_t on_demand) {
    if (messages < kFewMessages) return false;
    worse_ = on_connections + messages / kMargin < on_demand ? worse_ + 1 : 0;
    return worse_ >= kPhases;
}

}  // namespace starling::plan
