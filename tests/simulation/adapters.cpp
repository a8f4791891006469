#include "adapters.h"

#include <algorithm>
#include <cmath>

namespace starling::simulation {

uint64_t Line::begin(uint64_t from, uint64_t bytes) {
    const double first = std::max(static_cast<double>(from), free_);
    free_ = first + static_cast<double>(bytes) / bytes_per_ns_;
    return static_cast<uint64_t>(first);
}

uint64_t Line::end() const { return static_cast<uint64_t>(std::ceil(free_)); }

bool ConnectionCache::use(uint32_t connection) {
    const auto found = places_.find(connection);
    if (found != places_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return true;
    }
    if (places_.size() >= room_) {
        places_.erase(recent_.back());
        recent_.pop_back();
    }
    recent_.push_front(connection);
    places_[connection] = recent_.begin();
    return false;
}

Adapters::Adapters(uint32_t hosts, const Prices& of) : of_(of) {
    if (!of.exact) return;
    const Line adapter(of.of.adapter_bytes_per_ns);
    hosts_.assign(hosts, {adapter, adapter});
    if (of.has_switches) {
        const Line cables(of.of.switches_bytes_per_ns);
        switches_.assign((hosts + of.of.switches_hosts - 1) / of.of.switches_hosts, {cables, cables});
    }
    if (of.has_cache) caches_.assign(hosts, ConnectionCache(of.of.cache_connections));
}

bool Adapters::are_apart(uint32_t from, uint32_t to) const {
    return of_.has_switches && from / of_.of.switches_hosts != to / of_.of.switches_hosts;
}

Adapters::Sending Adapters::begin(uint32_t from, uint64_t bytes, uint64_t now, uint64_t latency) {
    const uint64_t packets = std::max<uint64_t>(1, (bytes + of_.of.adapter_packet - 1) / of_.of.adapter_packet);
    const uint64_t all = bytes + packets * of_.of.adapter_header;
    const uint64_t first = hosts_[from].out.begin(now, all);
    return {from, all, latency, {first, hosts_[from].out.end()}};
}

// The message passes the cable of its sender's switch with the first other switch that it reaches.
Adapters::Span Adapters::reach_switch(Sending& what, uint32_t leaf) {
    const uint32_t own = static_cast<uint32_t>(what.from / of_.of.switches_hosts);
    const auto pass = [&what](Line& line, const Span& before) {
        const uint64_t first = line.begin(before.first, what.bytes);
        return Span{first, std::max(before.last, line.end())};
    };
    if (what.switches.empty()) what.switches.emplace_back(own, pass(switches_[own].out, what.adapter));
    const auto known = std::find_if(what.switches.begin() + 1, what.switches.end(), [leaf](const auto& one) { return one.first == leaf; });
    if (known != what.switches.end()) return known->second;
    return what.switches.emplace_back(leaf, pass(switches_[leaf].in, what.switches.front().second)).second;
}

uint64_t Adapters::reach(Sending& what, uint32_t to) {
    Span span = what.adapter;
    uint64_t latency = what.latency;
    if (are_apart(what.from, to)) {
        latency += of_.of.switches_latency;
        span = reach_switch(what, static_cast<uint32_t>(to / of_.of.switches_hosts));
    }
    Line& in = hosts_[to].in;
    in.begin(span.first + latency, what.bytes);
    return std::max(span.last + latency, in.end());
}

Adapters::Transfer Adapters::send(uint32_t from, uint32_t to, uint64_t bytes, uint64_t now, uint64_t latency) {
    Sending one = begin(from, bytes, now, latency);
    return {one.sent(), reach(one, to)};
}

uint64_t Adapters::look_up(uint32_t from, uint32_t from_queue, uint32_t to, uint32_t to_queue) {
    if (!of_.has_cache) return 0;
    uint64_t missed = 0;
    if (!caches_[from].use(from_queue)) ++missed;
    if (!caches_[to].use(to_queue)) ++missed;
    misses += missed;
    return missed * of_.of.cache_miss;
}

}  // namespace starling::simulation
