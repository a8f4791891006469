#include "placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

extern "C" {
#include <scotch/scotch.h>
}

#include "base/grouping.h"
#include "run.h"

namespace starling::analysis {

namespace {

/// Overhead of a message, expressed in bytes: headers, and the work of both processes.
constexpr double kBytesPerMessage = 512;

double weight(const Pair& pair) {
    return pair.all.bytes + pair.in_memory.bytes + kBytesPerMessage * (pair.all.messages + pair.in_memory.messages);
}

/// The communication graph of the ranks.
WeightedGraph graph_of(const std::vector<Pair>& pairs, uint32_t size) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (const Pair& pair : pairs) edges.push_back({pair.a, pair.b, static_cast<uint64_t>(std::llround(weight(pair)))});
    return {size, std::move(edges)};
}

/// Returns Scotch's mapping onto hosts of these sizes; hosts may be slightly over or under their size.
std::vector<uint32_t> mapped(const WeightedGraph& graph, const std::vector<HostRoom>& rooms) {
    uint64_t heaviest = 1;
    for (uint32_t rank = 0; rank < graph.size(); ++rank)
        for (const auto& to : graph.of(rank)) heaviest = std::max(heaviest, to.weight);
    std::vector<SCOTCH_Num> begin{0}, to, loads, sizes;
    for (uint32_t rank = 0; rank < graph.size(); ++rank) {
        for (const auto& [partner, weight] : graph.of(rank)) {
            to.push_back(static_cast<SCOTCH_Num>(partner));
            const double share = static_cast<double>(weight) / static_cast<double>(heaviest);
            loads.push_back(1 + static_cast<SCOTCH_Num>(std::lround(1000 * share)));
        }
        begin.push_back(static_cast<SCOTCH_Num>(to.size()));
    }
    for (const HostRoom& room : rooms) sizes.push_back(static_cast<SCOTCH_Num>(room.ranks));
    const auto ranks = static_cast<SCOTCH_Num>(graph.size()), hosts = static_cast<SCOTCH_Num>(rooms.size());
    std::vector<SCOTCH_Num> out(graph.size(), 0);
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
    const WeightedGraph graph = graph_of(pairs, size);
    if (pairs.empty() || rooms.size() < 2) return in_order(rooms);
    std::vector<uint32_t> room;
    for (const HostRoom& host : rooms) room.push_back(host.ranks);
    std::vector<uint32_t> found = improve_groups(graph, room, mapped(graph, rooms));
    std::vector<uint32_t> ordered = improve_groups(graph, room, in_order(rooms));
    std::vector<uint32_t> out = graph.between(found) < graph.between(ordered) ? std::move(found) : std::move(ordered);
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
