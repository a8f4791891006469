#include "starling/plans/plans.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "launch/client/cached_run.h"
#include "launch/client/plan_cache.h"
#include "launch/common/text.h"

namespace starling {

namespace {

using launch::CachedRun;
using launch::PlanCache;
using Json = nlohmann::ordered_json;

struct KnownRun {
    PlanCache::CacheEntry entry;
    std::string problem;  ///< why the entry can't be used; empty: it can
    CachedRun run;
};

bool is_named(const KnownRun& known, const std::vector<std::string>& names) {
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
               return name == known.entry.name || name == known.run.plan.application ||
                      known.entry.name.starts_with(name + "-");
           });
}

std::vector<KnownRun> known_runs(const PlanCache& cache, const std::vector<std::string>& names) {
    std::vector<KnownRun> out;
    for (PlanCache::CacheEntry& entry : cache.list()) {
        KnownRun known{std::move(entry), "it can't be read", {}};
        if (const auto text = cache.read(known.entry.name)) known.problem = launch::parse_cached_run(*text, known.run);
        if (is_named(known, names)) out.push_back(std::move(known));
    }
    return out;
}

std::string time_text(time_t when) { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(when)); }

Json json_of(const KnownRun& known) {
    Json out{{"name", known.entry.name}, {"bytes", known.entry.bytes}, {"written", known.entry.written}};
    if (!known.problem.empty()) {
        out["problem"] = known.problem;
        return out;
    }
    out["application"] = known.run.plan.application;
    out["size"] = known.run.plan.size;
    out["command"] = known.run.command;
    out["hosts"] = known.run.hosts;
    out["host_of_rank"] = known.run.host_of_rank;
    out["placed"] = known.run.is_placed();
    out["seconds"] = {known.run.in_order_seconds, known.run.placed_seconds};
    return out;
}

std::string line_of(const KnownRun& known) {
    if (!known.problem.empty())
        return fmt::format("{}  {}  damaged: {}\n", time_text(known.entry.written), launch::printable(known.entry.name),
                           launch::printable(known.problem));
    const CachedRun& run = known.run;
    return fmt::format("{}  {}  {}, {}{}: {}\n", time_text(known.entry.written), known.entry.name,
                       launch::number_of(run.plan.size, "process"), launch::number_of(run.hosts.size(), "host"),
                       run.is_placed() ? ", placed" : "", launch::printable(run.command));
}

std::string seconds_text(double seconds) { return seconds > 0 ? fmt::format("{:.2f} s", seconds) : "not known"; }

void print_details(const KnownRun& known) {
    fmt::print("{}", line_of(known));
    if (!known.problem.empty()) return;
    const CachedRun& run = known.run;
    fmt::print("  time with ranks in order: {}; placed: {}\n", seconds_text(run.in_order_seconds),
               seconds_text(run.placed_seconds));
    for (size_t host = 0; host < run.hosts.size() && !run.host_of_rank.empty(); ++host) {
        fmt::print("  {}:", run.hosts[host]);
        for (size_t rank = 0; rank < run.host_of_rank.size(); ++rank)
            if (run.host_of_rank[rank] == host) fmt::print(" {}", rank);
        fmt::print("\n");
    }
    for (const auto& phase : run.plan.phases) {
        for (const auto& [rank, peers] : phase.peers) {
            fmt::print("  rank {}:", rank);
            for (const auto& peer : peers) fmt::print(" {} ({})", peer.rank, peer.priority);
            fmt::print("\n");
        }
    }
}

/// Opens the cache; returns false after a sentence. A folder that does not exist yet is like an empty one.
bool opens(PlanCache& cache) {
    const std::string problem = cache.open(false);
    if (problem.empty() || access(cache.path().c_str(), F_OK) != 0) return true;
    fmt::print(stderr, "starling plans: {}\n", problem);
    return false;
}

bool found_any(const std::vector<KnownRun>& all, const PlansOptions& options) {
    if (!all.empty() || options.names.empty()) return true;
    fmt::print(stderr, "starling plans: nothing is known of '{}'; `starling plans list` shows what is\n", options.names[0]);
    return false;
}

}  // namespace

int list_plans(const PlansOptions& options) {
    PlanCache cache;
    if (!opens(cache)) return 1;
    const std::vector<KnownRun> all = known_runs(cache, options.names);
    Json json = Json::array();
    for (const KnownRun& known : all) {
        if (options.json)
            json.push_back(json_of(known));
        else
            fmt::print("{}", line_of(known));
    }
    if (options.json) fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return found_any(all, options) ? 0 : 1;
}

int show_plan(const PlansOptions& options) {
    PlanCache cache;
    if (!opens(cache)) return 1;
    const std::vector<KnownRun> all = known_runs(cache, options.names);
    for (const KnownRun& known : all) print_details(known);
    return found_any(all, options) ? 0 : 1;
}

int clear_plans(const PlansOptions& options) {
    PlanCache cache;
    if (!opens(cache)) return 1;
    const std::vector<KnownRun> all = known_runs(cache, options.names);
    size_t removed = 0;
    for (const KnownRun& known : all) removed += cache.remove(known.entry.name);
    if (!found_any(all, options)) return 1;
    fmt::print("removed {} from {}\n", launch::number_of(removed, "plan"), cache.path());
    return 0;
}

}  // namespace starling
