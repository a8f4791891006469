#include "plan/doubt.h"

#include <algorithm>

namespace starling::plan {

uint64_t OnDemand::phase(std::span<const Sent> sent, uint32_t threshold, uint32_t limit) {
    std::vector<std::pair<uint64_t, Key>> direct;
    for (const auto& [partner, late] : sent) {
        const Key key(partner.job, partner.rank);
        const bool open = std::binary_search(open_.begin(), open_.end(), key);
        // Where the plan had none at all it can't be said how long it takes.
        const uint32_t opening = late < partner.priority ? late : 0;
        const uint32_t before = open ? 0 : std::max(threshold, opening);
        if (partner.priority > before) direct.emplace_back(partner.priority - before, key);
    }
    const auto more = [](const auto& a, const auto& b) { return a.first > b.first; };
    std::stable_sort(direct.begin(), direct.end(), more);
    if (direct.size() > limit) direct.resize(limit);
    uint64_t messages = 0;
    std::vector<Key> now;
    for (const auto& [count, key] : direct) {
        messages += count;
        now.push_back(key);
    }
    // Nobody takes the other places, so who had them keeps them.
    for (const Key& key : open_) {
        if (now.size() >= limit) break;
        if (std::find(now.begin(), now.end(), key) == now.end()) now.push_back(key);
    }
    std::sort(now.begin(), now.end());
    open_ = std::move(now);
    return messages;
}

bool Doubt::phase(uint64_t messages, uint64_t on_connections, uint64_t on_demand) {
    if (messages < kFewMessages) return false;
    worse_ = on_connections + messages / kMargin < on_demand ? worse_ + 1 : 0;
    return worse_ >= kPhases;
}

}  // namespace starling::plan
