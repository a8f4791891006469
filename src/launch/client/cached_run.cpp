#include "launch/client/cached_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/config.h"
#include "launch/client/plan_file.h"

namespace starling::launch {

namespace {

using CacheJson = nlohmann::json;

constexpr size_t kMostPeers = 16;           ///< maximum number of partners of a rank in the plan
constexpr uint64_t kBytesPerMessage = 512;  ///< overhead of a message, expressed in bytes
constexpr uint64_t kWorthwhile = 100;       ///< a placement must save this part of the traffic between hosts

std::string read_hosts_of(const CacheJson& json, CachedRun& out) {
    for (const char* const name : {"key", "command"})
        if (!json.contains(name) || !json[name].is_string()) return std::string("it has no \"") + name + "\"";
    out.key = json["key"].get<std::string>();
    out.command = json["command"].get<std::string>();
    const CacheJson hosts = json.value("hosts", CacheJson::array()), ranks = json.value("host_of_rank", CacheJson::array()),
                    seconds = json.value("seconds", CacheJson::array());
    if (!hosts.is_array() || !ranks.is_array()) return "\"hosts\" or \"host_of_rank\" is not a list";
    for (const CacheJson& host : hosts) {
        if (!host.is_string()) return "\"hosts\" has an entry that is not a name";
        out.hosts.push_back(host.get<std::string>());
        if (!may_be_host(out.hosts.back())) return "\"hosts\" has an entry that is not the name of a host";
    }
    for (const CacheJson& host : ranks) {
        if (!host.is_number_unsigned() || host.get<uint64_t>() >= out.hosts.size())
            return "\"host_of_rank\" has an entry that is not a host's number";
        out.host_of_rank.push_back(host.get<uint32_t>());
    }
    if (!ranks.empty() && ranks.size() != out.plan.size) return "\"host_of_rank\" does not have an entry per rank";
    if (!seconds.is_array() || seconds.size() != 2 || !seconds[0].is_number() || !seconds[1].is_number())
        return "\"seconds\" is not two numbers";
    out.in_order_seconds = seconds[0].get<double>();
    out.placed_seconds = seconds[1].get<double>();
    return {};
}

}  // namespace

std::string parse_cached_run(std::string_view text, CachedRun& out) {
    out = {};
    if (std::string wrong = parse_plan(text, out.plan); !wrong.empty()) return wrong;
    out.plan.cached = true;
    return read_hosts_of(CacheJson::parse(text), out);
}

std::string to_text(const CachedRun& run) {
    CacheJson phases = CacheJson::array();
    for (const Plan::PlanPhase& phase : run.plan.phases) {
        CacheJson peers = CacheJson::object();
        for (const auto& [rank, all] : phase.peers)
            for (const control::PlannedPeer& peer : all) peers[std::to_string(rank)].push_back({peer.rank, peer.priority});
        const CacheJson to = phase.to == control::kForever ? CacheJson() : CacheJson(phase.to);
        phases.push_back({{"name", phase.name}, {"from", phase.from}, {"to", to}, {"peers", peers}});
    }
    const CacheJson json = {{"starling_plan", 1},
                            {"application", run.plan.application},
                            {"size", run.plan.size},
                            {"phases", phases},
                            {"key", run.key},
                            {"command", run.command},
                            {"hosts", run.hosts},
                            {"host_of_rank", run.host_of_rank},
                            {"seconds", {run.in_order_seconds, run.placed_seconds}}};
    return json.dump(-1, ' ', false, CacheJson::error_handler_t::replace) + "\n";
}

namespace {

/// Returns the plan's one phase: the partners with enough messages for a connection.
Plan::PlanPhase whole_run(const std::vector<TrafficRecord::PairTraffic>& pairs) {
    const auto least = 2 * static_cast<uint64_t>(config().replace_messages);
    Plan::PlanPhase phase{"", 1, control::kForever, {}};
    for (const auto& pair : pairs) {
        if (pair.messages < least) continue;
        const auto priority = static_cast<uint32_t>(std::min<uint64_t>(pair.messages, UINT32_MAX / 2));
        phase.peers[pair.a].push_back({pair.b, priority});
        phase.peers[pair.b].push_back({pair.a, priority});
    }
    for (auto& [rank, peers] : phase.peers) {
        std::stable_sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) { return a.priority > b.priority; });
        if (peers.size() > kMostPeers) peers.resize(kMostPeers);
    }
    return phase;
}

/// Returns the host of each rank that has least traffic between hosts; empty if that is the usual order, or gains too little. `now`: the
/// host of each rank in the recorded run, numbered in the usual order.
std::vector<uint32_t> placement_of(const TrafficRecord& record, const std::vector<TrafficRecord::PairTraffic>& pairs,
                                   const std::vector<uint32_t>& now) {
    std::vector<WeightedGraph::WeightedEdge> edges;
    for (const auto& pair : pairs) edges.push_back({pair.a, pair.b, pair.bytes + kBytesPerMessage * pair.messages});
    const WeightedGraph graph(record.size(), std::move(edges));
    std::vector<uint32_t> in_order = now;
    std::sort(in_order.begin(), in_order.end());
    const auto hosts = static_cast<uint32_t>(record.hosts().size());
    std::vector<uint32_t> from_here = find_groups(graph, now, hosts);
    std::vector<uint32_t> afresh = find_groups(graph, in_order, hosts);
    // A placement that is as good as the present one is not worth a change.
    std::vector<uint32_t>& best =
        graph.between(afresh) + graph.between(afresh) / kWorthwhile < graph.between(from_here) ? afresh : from_here;
    const uint64_t before = graph.between(in_order);
    if (graph.between(best) + before / kWorthwhile >= before) return {};
    return std::move(best);
}

/// Renumbers the hosts of a placed run in the usual order. The record numbers them by their first ranks, which a placement changes.
void number_as(const std::vector<std::string>& usual, std::vector<std::string>& hosts, std::vector<uint32_t>& host_of_rank) {
    if (hosts == usual || hosts.size() != usual.size()) return;
    std::vector<uint32_t> index;
    for (const std::string& host : hosts) {
        const auto found = std::find(usual.begin(), usual.end(), host);
        if (found == usual.end()) return;
        index.push_back(static_cast<uint32_t>(found - usual.begin()));
    }
    for (uint32_t& host : host_of_rank) host = index[host];
    hosts = usual;
}

}  // namespace

CachedRun next_run(const TrafficRecord& record, CachedRun last, bool placed) {
    const std::vector<TrafficRecord::PairTraffic> pairs = record.pairs();
    CachedRun next = std::move(last);
    next.plan.size = record.size();
    next.plan.phases = {whole_run(pairs)};
    (placed ? next.placed_seconds : next.in_order_seconds) = record.seconds();
    const bool has_failed = placed && next.is_slower();
    std::vector<std::string> hosts = record.hosts();
    std::vector<uint32_t> now = record.host_of_rank();
    if (placed) number_as(next.hosts, hosts, now);
    std::vector<uint32_t> best;
    if (hosts.size() > 1) best = placement_of(record, pairs, now);
    // The duration of the last placed run says nothing about another placement, unless placed runs have turned out slower.
    if (!has_failed && placed && best != next.host_of_rank) next.placed_seconds = 0;
    if (!has_failed) next.host_of_rank = std::move(best);
    next.hosts = std::move(hosts);
    return next;
}

}  // namespace starling::launch
