#include "launch/universe/placement.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace starling::launch {

namespace {

struct Candidate {
    uint32_t host;
    uint32_t slots;   ///< number of slots that the host has for this request
    uint32_t placed;  ///< number of processes on the host, those of this request included
    uint32_t given = 0;
};

std::vector<Candidate> candidates(const PlacementRequest& request, const std::vector<HostCapacity>& universe) {
    std::vector<uint32_t> hosts = request.hosts;
    if (hosts.empty()) {
        hosts.resize(universe.size());
        std::iota(hosts.begin(), hosts.end(), 0u);
    }
    std::vector<Candidate> out;
    for (size_t i = 0; i < hosts.size(); ++i) {
        const HostCapacity& room = universe[hosts[i]];
        if (!room.usable) continue;
        const uint32_t own = i < request.slots.size() ? request.slots[i] : 0;
        out.push_back({hosts[i], std::max(own ? own : room.slots, 1u), room.placed});
    }
    return out;
}

// Returns whether `a` would be less full than `b`, with one more process on each.
bool emptier(const Candidate& a, const Candidate& b) {
    return (uint64_t{a.placed} + 1) * b.slots < (uint64_t{b.placed} + 1) * a.slots;
}

// Places processes in blocks: up to `room` on each host, then another round.
template <class RoomOf>
std::vector<uint32_t> in_blocks(std::vector<Candidate>& all, uint32_t count, RoomOf room_of) {
    std::vector<uint32_t> out;
    out.reserve(count);
    while (out.size() < count) {
        const size_t before = out.size();
        for (Candidate& candidate : all) {
            const uint32_t most = count - static_cast<uint32_t>(out.size());
            const uint32_t here = std::min(most, room_of(candidate));
            out.insert(out.end(), here, candidate.host);
            candidate.given += here;
        }
        if (out.size() == before) {
            // All hosts are full. In each further round, every host takes as many processes as it has slots.
            for (Candidate& candidate : all) candidate.given = candidate.placed = 0;
        }
    }
    return out;
}

// Sets `given` as if each process was placed on the emptiest host in turn, and returns the processes in blocks by host. Neighboring ranks
// stay together, unlike with placing one by one.
std::vector<uint32_t> emptiest_first(std::vector<Candidate>& all, uint32_t count) {
    const auto fuller = [](const Candidate* a, const Candidate* b) {
        if (emptier(*a, *b) || emptier(*b, *a)) return emptier(*b, *a);
        return a > b;
    };
    std::priority_queue<Candidate*, std::vector<Candidate*>, decltype(fuller)> queue(fuller);
    for (Candidate& candidate : all) queue.push(&candidate);
    for (uint32_t i = 0; i < count; ++i) {
        Candidate* least = queue.top();
        queue.pop();
        ++least->placed;
        ++least->given;
        queue.push(least);
    }
    std::vector<uint32_t> out;
    for (const Candidate& candidate : all) out.insert(out.end(), candidate.given, candidate.host);
    return out;
}

std::vector<uint32_t> one_per_host(const std::vector<Candidate>& all, uint32_t count) {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < count; ++i) out.push_back(all[i % all.size()].host);
    return out;
}

// Numbers the processes anew: host by host, or one per host in turn. The hosts keep the order of their first process.
std::vector<uint32_t> renumbered(const std::vector<uint32_t>& placed, bool in_turn) {
    std::vector<uint32_t> hosts, counts, index_of;
    for (const uint32_t host : placed) {
        if (host >= index_of.size()) index_of.resize(host + 1, job::kNoHost);
        if (index_of[host] == job::kNoHost) {
            index_of[host] = static_cast<uint32_t>(hosts.size());
            hosts.push_back(host);
            counts.push_back(0);
        }
        ++counts[index_of[host]];
    }
    std::vector<uint32_t> out;
    while (out.size() < placed.size()) {
        for (size_t i = 0; i < hosts.size(); ++i) {
            const uint32_t here = in_turn ? std::min(counts[i], 1u) : counts[i];
            out.insert(out.end(), here, hosts[i]);
            counts[i] -= here;
        }
    }
    return out;
}

std::vector<uint32_t> as_fixed(const PlacementRequest& request, std::vector<HostCapacity>& universe) {
    std::vector<uint32_t> out;
    for (const uint32_t place : request.fixed) {
        if (!universe[request.hosts[place]].usable) return {};
        out.push_back(request.hosts[place]);
    }
    for (const uint32_t host : out) ++universe[host].placed;
    return out;
}

}  // namespace

std::vector<uint32_t> place(const PlacementRequest& request, std::vector<HostCapacity>& universe) {
    if (!request.fixed.empty()) return as_fixed(request, universe);
    std::vector<Candidate> all = candidates(request, universe);
    if (all.empty()) return {};
    std::vector<uint32_t> out;
    if (request.per_host > 0) {
        if (request.least_loaded) std::stable_sort(all.begin(), all.end(), emptier);
        out = in_blocks(all, request.count, [&](const Candidate&) { return request.per_host; });
    } else if (request.mapping == Mapping::node || request.mapping == Mapping::node_ranked_by_slot) {
        if (request.least_loaded) std::stable_sort(all.begin(), all.end(), emptier);
        out = one_per_host(all, request.count);
    } else if (request.least_loaded) {
        out = emptiest_first(all, request.count);
    } else {
        out = in_blocks(all, request.count, [](const Candidate& c) {
            const uint32_t used = c.placed + c.given;
            return used < c.slots ? c.slots - used : 0;
        });
    }
    if (request.mapping == Mapping::node_ranked_by_slot || request.mapping == Mapping::slot_ranked_by_node)
        out = renumbered(out, request.mapping == Mapping::slot_ranked_by_node);
    for (const uint32_t host : out) ++universe[host].placed;
    return out;
}

uint64_t free_slots(const PlacementRequest& request, const std::vector<HostCapacity>& universe) {
    uint64_t sum = 0;
    for (const Candidate& one : candidates(request, universe)) sum += one.slots - std::min(one.slots, one.placed);
    return sum;
}

std::vector<uint32_t> hosts_in_use(std::vector<uint32_t>& host_of_rank) {
    std::vector<uint32_t> used;
    std::vector<uint32_t> index_of;
    for (uint32_t& host : host_of_rank) {
        if (host >= index_of.size()) index_of.resize(host + 1, job::kNoHost);
        if (index_of[host] == job::kNoHost) {
            index_of[host] = static_cast<uint32_t>(used.size());
            used.push_back(host);
        }
        host = index_of[host];
    }
    return used;
}

}  // namespace starling::launch
