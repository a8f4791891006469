#include "placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

extern "C" {
#include <scotch/scotch.h>
}

#include "run.h"

namespace starling::analysis {

namespace {

/// Overhead of a message, expressed in bytes: headers, and the work of both processes.
constexpr double kBytesPerMessage = 512;
constexpr uint32_t kRounds = 16;  ///< maximum number of rounds in which placements are improved

double weight(const Pair& pair) {
    return pair.all.bytes + pair.in_memory.bytes + kBytesPerMessage * (pair.all.messages + pair.in_memory.messages);
}

/// The communication graph: each rank's partners with their traffic.
struct Graph {
    struct Edge {
        uint32_t to;
        double weight;
    };
    std::vector<std::vector<Edge>> of;

    Graph(const std::vector<Pair>& pairs, uint32_t size) : of(size) {
        for (const Pair& pair : pairs) {
            of[pair.a].push_back({pair.b, weight(pair)});
            of[pair.b].push_back({pair.a, weight(pair)});
        }
    }
};

/// Returns Scotch's mapping onto hosts of these sizes; hosts may be slightly over or under their size.
std::vector<uint32_t> mapped(const Graph& graph, const std::vector<HostRoom>& rooms) {
    double heaviest = 0;
    for (const auto& edges : graph.of)
        for (const Graph::Edge& edge : edges) heaviest = std::max(heaviest, edge.weight);
    std::vector<SCOTCH_Num> begin{0}, to, loads, sizes;
    for (const auto& edges : graph.of) {
        for (const Graph::Edge& edge : edges) {
            to.push_back(static_cast<SCOTCH_Num>(edge.to));
            loads.push_back(1 + static_cast<SCOTCH_Num>(std::lround(1000 * edge.weight / heaviest)));
        }
        begin.push_back(static_cast<SCOTCH_Num>(to.size()));
    }
    for (const HostRoom& room : rooms) sizes.push_back(static_cast<SCOTCH_Num>(room.ranks));
    const auto ranks = static_cast<SCOTCH_Num>(graph.of.size()), hosts = static_cast<SCOTCH_Num>(rooms.size());
    std::vector<SCOTCH_Num> out(graph.of.size(), 0);
    SCOTCH_Graph source;
    SCOTCH_Arch target;
    SCOTCH_Strat strategy;
    SCOTCH_randomReset();
    SCOTCH_graphInit(&source);
    SCOTCH_archInit(&target);
    SCOTCH_stratInit(&strategy);
    constexpr double kImbalance = 0.01;
    const bool done = SCOTCH_graphBuild(&source, 0, ranks, begin.data(), nullptr, nullptr, nullptr,
                                        static_cast<SCOTCH_Num>(to.size()), to.data(), loads.data()) == 0 &&
                      SCOTCH_archCmpltw(&target, hosts, sizes.data()) == 0 &&
                      SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATQUALITY, hosts, kImbalance) == 0 &&
                      SCOTCH_graphMap(&source, &target, &strategy, out.data()) == 0;
    SCOTCH_stratExit(&strategy);
    SCOTCH_archExit(&target);
    SCOTCH_graphExit(&source);
    if (!done) throw Refusal("Scotch could not place the ranks");
    return {out.begin(), out.end()};
}

/// Places ranks in order, host by host, as mpiexec does without a rank file.
std::vector<uint32_t> in_order(const std::vector<HostRoom>& rooms) {
    std::vector<uint32_t> out;
    for (uint32_t host = 0; host < rooms.size(); ++host) out.insert(out.end(), rooms[host].ranks, host);
    return out;
}

/// A placement of ranks on hosts, which it improves step by step.
class Improver {
  public:
    Improver(const Graph& graph, const std::vector<HostRoom>& rooms, std::vector<uint32_t> start)
        : graph_(graph), rooms_(rooms), host_of_(std::move(start)), on_(rooms.size(), 0) {
        for (const uint32_t host : host_of_) ++on_[host];
    }

    /// Moves ranks from hosts that have too many, each time the rank for which the move costs least.
    void balance() {
        for (uint32_t host = 0; host < rooms_.size(); ++host)
            while (on_[host] > rooms_[host].ranks) move_best(host);
    }

    /// Swaps pairs of ranks on different hosts while that increases the traffic within hosts.
    void swap() {
        for (uint32_t round = 0; round < kRounds; ++round) {
            bool better = false;
            for (uint32_t rank = 0; rank < host_of_.size(); ++rank) better |= swap_best(rank);
            if (!better) break;
        }
    }

    const std::vector<uint32_t>& host_of() const { return host_of_; }

    double between() const {
        double sum = 0;
        for (uint32_t rank = 0; rank < host_of_.size(); ++rank)
            for (const Graph::Edge& edge : graph_.of[rank]) sum += host_of_[edge.to] != host_of_[rank] ? edge.weight : 0;
        return sum / 2;
    }

  private:
    double with(uint32_t rank, uint32_t host) const {
        double sum = 0;
        for (const Graph::Edge& edge : graph_.of[rank]) sum += host_of_[edge.to] == host ? edge.weight : 0;
        return sum;
    }

    void move_best(uint32_t from) {
        uint32_t best = 0, target = from;
        double most = -std::numeric_limits<double>::infinity();
        for (uint32_t rank = 0; rank < host_of_.size(); ++rank) {
            if (host_of_[rank] != from) continue;
            for (uint32_t host = 0; host < rooms_.size(); ++host) {
                if (on_[host] >= rooms_[host].ranks) continue;
                const double gain = with(rank, host) - with(rank, from);
                if (gain <= most) continue;
                most = gain;
                best = rank;
                target = host;
            }
        }
        host_of_[best] = target;
        --on_[from];
        ++on_[target];
    }

    /// Swaps the rank with the best candidate on the hosts of its partners, if that helps. Returns whether it swapped.
    bool swap_best(uint32_t rank) {
        const uint32_t own = host_of_[rank];
        const double here = with(rank, own);
        double most = 1e-9 * (here + 1);
        uint32_t best = rank;
        std::vector<uint32_t> seen;
        for (const Graph::Edge& edge : graph_.of[rank]) {
            const uint32_t host = host_of_[edge.to];
            if (host == own || std::find(seen.begin(), seen.end(), host) != seen.end()) continue;
            seen.push_back(host);
            const double there = with(rank, host);
            if (there <= here) continue;
            for (const uint32_t other : candidates(rank, host)) {
                const double gain = there - here + with(other, own) - with(other, host) - 2 * between_them(rank, other);
                if (gain <= most) continue;
                most = gain;
                best = other;
            }
        }
        if (best == rank) return false;
        std::swap(host_of_[rank], host_of_[best]);
        return true;
    }

    /// Returns the ranks on `host` that could be swapped with `rank`.
    std::vector<uint32_t> candidates(uint32_t rank, uint32_t host) const {
        std::vector<uint32_t> out;
        for (uint32_t other = 0; other < host_of_.size(); ++other)
            if (other != rank && host_of_[other] == host) out.push_back(other);
        return out;
    }

    double between_them(uint32_t one, uint32_t other) const {
        for (const Graph::Edge& edge : graph_.of[one])
            if (edge.to == other) return edge.weight;
        return 0;
    }

    const Graph& graph_;
    const std::vector<HostRoom>& rooms_;
    std::vector<uint32_t> host_of_;
    std::vector<uint32_t> on_;
};

/// Renumbers hosts of equal room by their lowest rank, since they are equivalent for the ranks.
void name_by_first_rank(std::vector<uint32_t>& host_of_rank, const std::vector<HostRoom>& rooms) {
    std::vector<uint32_t> name(rooms.size(), UINT32_MAX);
    std::vector<bool> given(rooms.size(), false);
    for (uint32_t& host : host_of_rank) {
        if (name[host] == UINT32_MAX) {
            uint32_t other = 0;
            while (given[other] || rooms[other].ranks != rooms[host].ranks) ++other;
            name[host] = other;
            given[other] = true;
        }
        host = name[host];
    }
}

}  // namespace

std::vector<HostRoom> rooms_for(std::vector<HostRoom> slots, uint32_t size) {
    const auto unknown =
        static_cast<uint32_t>(std::count_if(slots.begin(), slots.end(), [](auto& host) { return host.ranks == 0; }));
    uint64_t known = 0;
    for (const HostRoom& host : slots) known += host.ranks;
    uint32_t left = known < size ? size - static_cast<uint32_t>(known) : 0, share = unknown;
    for (HostRoom& host : slots) {
        if (host.ranks > 0) continue;
        host.ranks = left / share + (left % share != 0);
        left -= host.ranks;
        --share;
    }
    known = 0;
    for (const HostRoom& host : slots) known += host.ranks;
    uint64_t before = 0, given = 0;
    for (HostRoom& host : slots) {
        before += host.ranks;
        const uint64_t until = known < size ? before * size / known : std::min<uint64_t>(before, size);
        host.ranks = static_cast<uint32_t>(until - given);
        given = until;
    }
    std::erase_if(slots, [](const HostRoom& host) { return host.ranks == 0; });
    return slots;
}

double bytes_between(const std::vector<Pair>& pairs, const std::vector<uint32_t>& host_of_rank) {
    double sum = 0;
    for (const Pair& pair : pairs)
        sum += host_of_rank[pair.a] != host_of_rank[pair.b] ? pair.all.bytes + pair.in_memory.bytes : 0;
    return sum;
}

std::vector<uint32_t> place(const std::vector<Pair>& pairs, uint32_t size, const std::vector<HostRoom>& rooms) {
    const Graph graph(pairs, size);
    if (pairs.empty() || rooms.size() < 2) return in_order(rooms);
    Improver found(graph, rooms, mapped(graph, rooms)), ordered(graph, rooms, in_order(rooms));
    found.balance();
    found.swap();
    ordered.swap();
    std::vector<uint32_t> out = found.between() < ordered.between() ? found.host_of() : ordered.host_of();
    name_by_first_rank(out, rooms);
    return out;
}

std::string rank_file(const std::vector<uint32_t>& host_of_rank, const std::vector<HostRoom>& rooms) {
    std::vector<uint32_t> next(rooms.size(), 0);
    std::string out = "# mpiexec --rankfile: ranks with much traffic share a host\n";
    for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
        const uint32_t host = host_of_rank[rank];
        out += fmt::format("rank {}={} slot={}\n", rank, rooms[host].name, next[host]++);
    }
    return out;
}

}  // namespace starling::analysis
