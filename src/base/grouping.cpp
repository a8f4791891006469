#include "base/grouping.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace starling {

namespace {

constexpr uint32_t kRounds = 16;              ///< maximum number of rounds of swaps
constexpr uint64_t kMostVisits = 20'000'000;  ///< maximum number of visits of edges by the swaps of one search: some 50 ms
constexpr uint64_t kWorthwhile = 100;         ///< groups must lower the weight between them by this part of it

using Neighbor = WeightedGraph::Neighbor;

}  // namespace

WeightedGraph::WeightedGraph(uint32_t vertices, std::vector<WeightedEdge> edges) : neighbors_(vertices) {
    std::erase_if(edges, [](const WeightedEdge& edge) { return edge.a == edge.b || edge.weight == 0; });
    for (WeightedEdge& edge : edges)
        if (edge.a > edge.b) std::swap(edge.a, edge.b);
    std::sort(edges.begin(), edges.end(), [](const WeightedEdge& one, const WeightedEdge& other) {
        return std::pair(one.a, one.b) < std::pair(other.a, other.b);
    });
    for (size_t i = 0; i < edges.size();) {
        const auto [a, b, first] = edges[i];
        uint64_t weight = first;
        for (++i; i < edges.size() && edges[i].a == a && edges[i].b == b; ++i) weight += edges[i].weight;
        neighbors_[a].push_back({b, weight});
        neighbors_[b].push_back({a, weight});
    }
}

uint64_t WeightedGraph::between(const std::vector<uint32_t>& group_of) const {
    uint64_t twice = 0;
    for (uint32_t vertex = 0; vertex < size(); ++vertex)
        for (const Neighbor& to : neighbors_[vertex]) twice += group_of[to.vertex] != group_of[vertex] ? to.weight : 0;
    return twice / 2;
}

std::vector<uint32_t> grow_groups(const WeightedGraph& graph, const std::vector<uint32_t>& room, GrowthOrder growth) {
    constexpr uint32_t kNone = ~0u;
    std::vector<uint32_t> group_of(graph.size(), kNone);
    std::vector<uint64_t> free_weight(graph.size(), 0);  // weight to vertices that no group has yet
    // By free weight, then by number; entries whose weight has changed are outdated.
    using Seed = std::pair<uint64_t, uint32_t>;
    std::priority_queue<Seed, std::vector<Seed>, std::greater<>> seeds;
    for (uint32_t vertex = 0; vertex < graph.size(); ++vertex) {
        for (const Neighbor& to : graph.of(vertex)) free_weight[vertex] += to.weight;
        seeds.emplace(free_weight[vertex], vertex);
    }
    for (uint32_t group = 0; group < room.size(); ++group) {
        // By weight to the group, then by `growth`, then by number.
        std::vector<uint64_t> pull(graph.size(), 0), touched(graph.size(), 0);
        uint64_t touches = 0;
        using GrowthCandidate = std::tuple<uint64_t, uint64_t, uint32_t>;
        std::priority_queue<GrowthCandidate> candidates;
        for (uint32_t placed = 0; placed < room[group];) {
            uint32_t next = kNone;
            while (next == kNone && !candidates.empty()) {
                const auto [weight, rest, number] = candidates.top();
                candidates.pop();
                const uint32_t vertex = ~number;
                if (group_of[vertex] == kNone && pull[vertex] == weight) next = vertex;
            }
            while (next == kNone) {
                const auto [weight, vertex] = seeds.top();
                seeds.pop();
                if (group_of[vertex] == kNone && free_weight[vertex] == weight) next = vertex;
            }
            group_of[next] = group;
            ++placed;
            for (const Neighbor& to : graph.of(next)) {
                if (group_of[to.vertex] != kNone) continue;
                free_weight[to.vertex] -= to.weight;
                pull[to.vertex] += to.weight;
                seeds.emplace(free_weight[to.vertex], to.vertex);
                if (touched[to.vertex] == 0) touched[to.vertex] = ++touches;
                const uint64_t second = growth == GrowthOrder::outer ? free_weight[to.vertex] : touched[to.vertex];
                candidates.emplace(pull[to.vertex], ~second, ~to.vertex);
            }
        }
    }
    return group_of;
}

namespace {

class Improver {
  public:
    /// `visits`: number of visits of edges so far, which this object increases.
    Improver(const WeightedGraph& graph, const std::vector<uint32_t>& room, std::vector<uint32_t> start, uint64_t& visits)
        : graph_(graph), room_(room), group_of_(std::move(start)), members_(room.size()), visits_(visits) {
        for (uint32_t vertex = 0; vertex < graph.size(); ++vertex) members_[group_of_[vertex]].push_back(vertex);
    }

    void balance() {
        for (uint32_t group = 0; group < room_.size(); ++group)
            while (members_[group].size() > room_[group]) move_best(group);
    }

    void swap() {
        for (uint32_t round = 0; round < kRounds; ++round) {
            bool better = false;
            for (uint32_t vertex = 0; vertex < graph_.size() && visits_ < kMostVisits; ++vertex) better |= swap_best(vertex);
            if (!better) break;
        }
    }

    std::vector<uint32_t> take() { return std::move(group_of_); }

  private:
    int64_t with(uint32_t vertex, uint32_t group) {
        uint64_t sum = 0;
        for (const Neighbor& to : graph_.of(vertex)) sum += group_of_[to.vertex] == group ? to.weight : 0;
        visits_ += graph_.of(vertex).size() + 1;
        return static_cast<int64_t>(sum);
    }

    int64_t between_them(uint32_t one, uint32_t other) {
        visits_ += graph_.of(one).size();
        for (const Neighbor& to : graph_.of(one))
            if (to.vertex == other) return static_cast<int64_t>(to.weight);
        return 0;
    }

    void move_best(uint32_t from) {
        uint32_t best = 0, target = from;
        int64_t most = INT64_MIN;
        for (const uint32_t vertex : members_[from]) {
            for (uint32_t group = 0; group < room_.size(); ++group) {
                if (members_[group].size() >= room_[group]) continue;
                const int64_t gain = with(vertex, group) - with(vertex, from);
                if (gain <= most) continue;
                most = gain;
                best = vertex;
                target = group;
            }
        }
        std::erase(members_[from], best);
        members_[target].push_back(best);
        group_of_[best] = target;
    }

    /// Swaps the vertex with the best one of its neighbors' groups, if that helps. Returns whether it swapped.
    bool swap_best(uint32_t vertex) {
        const uint32_t own = group_of_[vertex];
        const int64_t here = with(vertex, own);
        int64_t most = 0;
        uint32_t best = vertex;
        std::vector<uint32_t> seen;
        for (const Neighbor& to : graph_.of(vertex)) {
            const uint32_t group = group_of_[to.vertex];
            if (group == own || std::find(seen.begin(), seen.end(), group) != seen.end()) continue;
            seen.push_back(group);
            const int64_t there = with(vertex, group);
            if (there <= here) continue;
            for (const uint32_t other : members_[group]) {
                const int64_t gain = there - here + with(other, own) - with(other, group) - 2 * between_them(vertex, other);
                if (gain <= most) continue;
                most = gain;
                best = other;
            }
        }
        if (best == vertex) return false;
        exchange(vertex, best);
        return true;
    }

    void exchange(uint32_t one, uint32_t other) {
        std::replace(members_[group_of_[one]].begin(), members_[group_of_[one]].end(), one, other);
        std::replace(members_[group_of_[other]].begin(), members_[group_of_[other]].end(), other, one);
        std::swap(group_of_[one], group_of_[other]);
    }

    const WeightedGraph& graph_;
    const std::vector<uint32_t>& room_;
    std::vector<uint32_t> group_of_;
    std::vector<std::vector<uint32_t>> members_;  ///< vertices of each group
    uint64_t& visits_;
};

}  // namespace

namespace {

/// improve_groups() with a limit of work that several calls share.
std::vector<uint32_t> improve(const WeightedGraph& graph, const std::vector<uint32_t>& room, std::vector<uint32_t> start,
                              uint64_t& visits) {
    Improver improver(graph, room, std::move(start), visits);
    improver.balance();
    improver.swap();
    return improver.take();
}

}  // namespace

std::vector<uint32_t> improve_groups(const WeightedGraph& graph, const std::vector<uint32_t>& room,
                                     std::vector<uint32_t> start) {
    uint64_t visits = 0;
    return improve(graph, room, std::move(start), visits);
}

namespace {

/// Returns the best groups that growing finds.
std::vector<uint32_t> grow_and_improve(const WeightedGraph& graph, const std::vector<uint32_t>& room, uint64_t& visits) {
    std::vector<uint32_t> best;
    for (const GrowthOrder growth : {GrowthOrder::near, GrowthOrder::outer}) {
        std::vector<uint32_t> grown = improve(graph, room, grow_groups(graph, room, growth), visits);
        if (best.empty() || graph.between(grown) < graph.between(best)) best = std::move(grown);
    }
    return best;
}

/// Returns the part of the graph with these vertices, numbered anew in their order.
WeightedGraph part_of(const WeightedGraph& graph, const std::vector<uint32_t>& vertices) {
    constexpr uint32_t kNone = ~0u;
    std::vector<uint32_t> number(graph.size(), kNone);
    for (uint32_t i = 0; i < vertices.size(); ++i) number[vertices[i]] = i;
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (const uint32_t vertex : vertices)
        for (const Neighbor& to : graph.of(vertex))
            if (vertex < to.vertex && number[to.vertex] != kNone)
                edges.push_back({number[vertex], number[to.vertex], to.weight});
    return {static_cast<uint32_t>(vertices.size()), std::move(edges)};
}

/// Divides the vertices among the groups first, first + 1, … last - 1: in two halves, and then each half.
void split(const WeightedGraph& graph, const std::vector<uint32_t>& vertices, const std::vector<uint32_t>& room, uint32_t first,
           uint32_t last, std::vector<uint32_t>& group_of, uint64_t& visits) {
    if (last - first == 1) {
        for (const uint32_t vertex : vertices) group_of[vertex] = first;
        return;
    }
    const uint32_t middle = first + (last - first) / 2;
    std::vector<uint32_t> halves(2, 0), parts[2];
    for (uint32_t group = first; group < last; ++group) halves[group >= middle] += room[group];
    const std::vector<uint32_t> half_of = grow_and_improve(part_of(graph, vertices), halves, visits);
    for (size_t i = 0; i < vertices.size(); ++i) parts[half_of[i]].push_back(vertices[i]);
    split(graph, parts[0], room, first, middle, group_of, visits);
    split(graph, parts[1], room, middle, last, group_of, visits);
}

}  // namespace

std::vector<uint32_t> find_groups(const WeightedGraph& graph, const std::vector<uint32_t>& start, uint32_t groups) {
    std::vector<uint32_t> room(groups, 0);
    for (const uint32_t group : start) ++room[group];
    const uint64_t before = graph.between(start);
    if (before == 0) return start;
    std::vector<uint32_t> all(graph.size()), halved(graph.size());
    std::iota(all.begin(), all.end(), 0);
    uint64_t halving = 0, growing = 0;
    split(graph, all, room, 0, groups, halved, halving);
    std::vector<uint32_t> best = improve_groups(graph, room, start);
    for (const std::vector<uint32_t>& found :
         std::array{improve_groups(graph, room, halved), grow_and_improve(graph, room, growing)})
        if (graph.between(found) < graph.between(best)) best = found;
    const uint64_t after = graph.between(best);
    if (after + before / kWorthwhile >= before) return start;
    return best;
}

}  // namespace starling
