#include "collective/core/host_map.h"

#include <algorithm>
#include <unordered_map>

namespace starling::collective {

int HostMap::host_of(int participant) const {
    if (!contiguous) return hosts[static_cast<size_t>(participant - base)];
    return static_cast<int>(std::upper_bound(leaders.begin(), leaders.end(), participant) - leaders.begin()) - 1;
}

int HostMap::place_of(int participant) const {
    return static_cast<int>(std::lower_bound(mine.begin(), mine.end(), participant) - mine.begin());
}

HostMap make_host_map(const std::vector<int>& host_identity, int base, int me) {
    HostMap map;
    map.base = base;
    const auto n = static_cast<int>(host_identity.size());
    std::unordered_map<int, int> numbers;
    map.hosts.resize(host_identity.size());
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(i);
        const auto [known, fresh] = numbers.emplace(host_identity[at], static_cast<int>(map.leaders.size()));
        if (fresh)
            map.leaders.push_back(base + i);
        else if (known->second != map.hosts[at - 1])
            map.contiguous = false;
        map.hosts[at] = known->second;
    }
    if (map.leaders.size() == 1 || map.leaders.size() == host_identity.size()) return {};
    map.my_host = map.hosts[static_cast<size_t>(me)];
    for (int i = 0; i < n; ++i) {
        if (map.hosts[static_cast<size_t>(i)] != map.my_host) continue;
        if (i == me) map.my_place = static_cast<int>(map.mine.size());
        map.mine.push_back(base + i);
    }
    if (map.contiguous) std::vector<int>().swap(map.hosts);
    return map;
}

}  // namespace starling::collective
