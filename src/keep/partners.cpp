#include "keep/partners.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace starling::keep {

namespace {

/// Ranks in the order of their hosts, and the place and length of the longest sequence with one host.
struct RanksByHost {
    std::vector<int> ranks;
    size_t largest = 0, size = 0;
};

RanksByHost order_by_host(const std::vector<int>& hosts) {
    RanksByHost order{std::vector<int>(hosts.size())};
    std::iota(order.ranks.begin(), order.ranks.end(), 0);
    std::stable_sort(order.ranks.begin(), order.ranks.end(), [&](int a, int b) { return hosts[a] < hosts[b]; });
    for (size_t begin = 0, end = 0; begin < hosts.size(); begin = end) {
        while (end < hosts.size() && hosts[order.ranks[end]] == hosts[order.ranks[begin]]) ++end;
        if (end - begin > order.size) order.largest = begin, order.size = end - begin;
    }
    return order;
}

}  // namespace

std::vector<int> partners_of(const std::vector<int>& hosts) {
    const size_t n = hosts.size();
    std::vector<int> partners(n, -1);
    if (n < 2) return partners;
    const auto [ranks, largest, size] = order_by_host(hosts);
    if (size == n || 2 * size <= n) {
        // A distance of the largest host's size leaves every host, also around the end.
        const size_t distance = size == n ? 1 : size;
        for (size_t i = 0; i < n; ++i) partners[ranks[i]] = ranks[(i + distance) % n];
        return partners;
    }
    std::vector<int> others(ranks);
    others.erase(others.begin() + static_cast<ptrdiff_t>(largest), others.begin() + static_cast<ptrdiff_t>(largest + size));
    for (size_t i = 0; i < size; ++i) partners[ranks[largest + i]] = others[i % others.size()];
    for (size_t i = 0; i < others.size(); ++i) partners[others[i]] = ranks[largest + i];
    return partners;
}

}  // namespace starling::keep
