#include <algorithm>
#include <map>

#include "hang/judge.h"
#include "hang/state_text.h"

namespace starling::hang {

namespace {

/// The group's members, with the smallest and the largest of each value that may differ within a group.
struct GroupSpread {
    std::vector<size_t> ranks;
    RankReport least, most;
};

/// Visits the values that may differ between processes in equal states.
template <class Visit>
void each_value(RankReport& a, RankReport& b, Visit visit) {
    visit(a.cores, b.cores);
    visit(a.since_wait, b.since_wait);
    visit(a.since_start, b.since_start);
    if (!a.report || !b.report) return;
    for (size_t i = 0; i < std::min(a.report->waits.size(), b.report->waits.size()); ++i)
        visit(a.report->waits[i].seconds, b.report->waits[i].seconds);
}

/// Returns the text that is equal for processes in equal states.
std::string key_of(const RankReport& rank, const CollectiveCalls& collectives, uint64_t home) {
    RankReport plain = rank;
    each_value(plain, plain, [&](double& value, double&) { value = value < 0 ? value : 0; });
    plain.cores = is_idle(rank) ? 0 : 1;
    return state_text(plain, {home, &collectives, &plain});
}

void widen(GroupSpread& group, const RankReport& rank) {
    RankReport other = rank;
    each_value(group.least, other, [](double& least, double& value) { least = std::min(least, value); });
    each_value(group.most, other, [](double& most, double& value) { most = std::max(most, value); });
}

}  // namespace

std::vector<RankGroup> groups(const std::vector<RankReport>& ranks, uint64_t home) {
    const CollectiveCalls collectives(ranks);
    std::map<std::string, size_t> places;
    std::vector<GroupSpread> spreads;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const auto [place, added] = places.emplace(key_of(ranks[i], collectives, home), spreads.size());
        if (added) spreads.push_back({{}, ranks[i], ranks[i]});
        spreads[place->second].ranks.push_back(i);
        widen(spreads[place->second], ranks[i]);
    }
    std::vector<RankGroup> all;
    for (GroupSpread& spread : spreads) {
        if (spread.ranks.size() == 1) {
            all.push_back({spread.ranks, sentence(ranks[spread.ranks[0]], home, &collectives)});
            continue;
        }
        std::vector<ProcessName> names;
        for (size_t i : spread.ranks) names.push_back(ranks[i].process);
        all.push_back({spread.ranks,
                       names_of(std::move(names), home) + " " + state_text(spread.least, {home, &collectives, &spread.most})});
    }
    return all;
}

}  // namespace starling::hang
