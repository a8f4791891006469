#include "plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/config.h"
#include "fields.h"
#include "groups.h"
#include "pairs.h"
#include "scale.h"
#include "what_if.h"

namespace starling::analysis {

namespace {

constexpr double kWorthWaiting = 0.02;    ///< minimum share of time that senders wait before the eager limit is changed
constexpr double kWorthPlacing = 0.01;    ///< minimum share of the bytes between hosts that moving ranks must save
constexpr uint64_t kMostEager = 1 << 18;  ///< highest eager limit in bytes; longer messages should not be copied twice

/// Returns the pairs within the run's first job, in which a process's number is also its rank.
std::vector<Pair> within(const Job& job, std::vector<Pair> pairs) {
    std::erase_if(pairs, [&](const Pair& pair) { return pair.b >= job.first + job.size; });
    return pairs;
}

/// Pairs of processes that have a connection.
using Connected = std::set<std::pair<uint32_t, uint32_t>>;

/// Returns the pairs that should have a connection in a group, each with its worth. A pair loses its connection to another only if the
/// difference in worth exceeds the cost of replacing it.
std::vector<Pair> chosen(std::vector<Pair> worth, uint32_t most, uint32_t size, const Connected& before) {
    const double cost = static_cast<double>(config().replace_messages);
    const auto had = [&](const Pair& pair) { return before.contains({pair.a, pair.b}); };
    std::erase_if(worth, [](const Pair& pair) { return !is_worth_opening(pair); });
    for (Pair& pair : worth) pair.all.messages += had(pair) ? cost : 0;
    sort_by_messages(worth);
    std::vector<Pair> out = choose(worth, most, size);
    for (Pair& pair : out) pair.all.messages -= had(pair) ? cost : 0;
    sort_by_messages(out);
    return out;
}

PlannedPhase planned(const Group& group, const std::vector<Pair>& pairs, uint32_t size) {
    PlannedPhase out{group.name, group.from, group.to, {}};
    out.peers.resize(size);
    for (const Pair& pair : pairs) {
        const uint64_t priority = std::max<uint64_t>(1, std::llround(pair.all.messages));
        out.peers[pair.a].emplace_back(pair.b, priority);
        out.peers[pair.b].emplace_back(pair.a, priority);
    }
    return out;
}

/// Returns the index of the group of each span.
std::vector<size_t> group_of_span(const Run& run, const std::vector<Group>& groups) {
    std::vector<size_t> out(run.spans.size(), 0);
    for (size_t group = 0; group < groups.size(); ++group)
        for (const size_t span : groups[group].spans) out[span] = group;
    return out;
}

/// Extends the last known group of each phase to all later occurrences.
void leave_open_ends(std::vector<PlannedPhase>& phases) {
    std::map<std::string, PlannedPhase*> last;
    for (PlannedPhase& phase : phases) {
        PlannedPhase*& known = last[phase.name];
        if (!known || phase.from > known->from) known = &phase;
    }
    for (const auto& [name, phase] : last) phase->to.reset();
}

/// Adds the plan's phases. Returns the sum of all groups' traffic.
std::vector<Pair> add_phases(const Run& run, Plan& plan) {
    const uint32_t recorded = run.jobs[0].size;
    std::vector<Group> groups = groups_of(run);
    add_worth(run, groups);
    const std::vector<size_t> group_of = group_of_span(run, groups);
    std::vector<Connected> connected(groups.size());
    std::vector<Pair> all;
    for (size_t i = 0; i < groups.size(); ++i) {
        Group& group = groups[i];
        group.pairs = within(run.jobs[0], std::move(group.pairs));
        group.worth = within(run.jobs[0], std::move(group.worth));
        if (plan.size != recorded) {
            const Structure structure = structure_of(group.pairs, recorded);
            group.pairs = scale(group.pairs, structure, recorded, plan.size);
            group.worth = scale(group.worth, structure, recorded, plan.size);
        }
        const size_t first = group.spans.front();
        const std::vector<Pair> pairs =
            chosen(group.worth, plan.max_direct, plan.size, first > 0 ? connected[group_of[first - 1]] : Connected{});
        for (const Pair& pair : pairs) connected[i].emplace(pair.a, pair.b);
        plan.phases.push_back(planned(group, pairs, plan.size));
        all = sum_of(all, group.pairs);
    }
    leave_open_ends(plan.phases);
    return all;
}

/// Returns a higher eager limit if senders of messages slightly above the present limit wait for their receivers.
std::optional<uint64_t> choose_eager_limit(const Run& run) {
    Amount large;
    double late_receiver = 0, time = 0;
    for (const Span& span : run.spans) {
        large += span.sizes[Size::large];
        late_receiver += span.waits.late_receiver;
        for (const Part& part : span.parts) time += part.seconds;
    }
    if (large.messages == 0 || late_receiver < kWorthWaiting * time) return std::nullopt;
    const uint64_t limit = std::bit_ceil(static_cast<uint64_t>(std::ceil(large.bytes / large.messages)));
    if (limit > kMostEager) return std::nullopt;
    return limit;
}

/// Returns the recorded placement: the number of the job's ranks on each host.
std::vector<HostRoom> recorded_rooms(const Job& job) {
    std::vector<HostRoom> rooms;
    for (const std::string& host : job.hosts) rooms.push_back({host, 0});
    for (const uint32_t host : job.host_of_rank)
        if (host < rooms.size()) ++rooms[host].ranks;
    std::erase_if(rooms, [](const HostRoom& room) { return room.ranks == 0; });
    return rooms;
}

/// Adds a placement if it saves bytes between hosts compared with ranks in order.
void add_placement(const Run& run, const PlanWish& wish, const std::vector<Pair>& pairs, Plan& plan) {
    plan.rooms = rooms_for(wish.hosts.empty() ? recorded_rooms(run.jobs[0]) : wish.hosts, plan.size);
    if (plan.rooms.size() < 2) return;
    std::vector<uint32_t> in_order;
    for (uint32_t host = 0; host < plan.rooms.size(); ++host) in_order.insert(in_order.end(), plan.rooms[host].ranks, host);
    std::vector<uint32_t> placed = place(pairs, plan.size, plan.rooms);
    plan.bytes_in_order = bytes_between(pairs, in_order);
    plan.bytes_placed = bytes_between(pairs, placed);
    if (plan.bytes_placed < (1 - kWorthPlacing) * plan.bytes_in_order) plan.host_of_rank = std::move(placed);
}

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string joined(const std::vector<std::string>& texts, const char* between) {
    return fmt::format("{}", fmt::join(texts, between));
}

std::string phase_text(const PlannedPhase& phase) {
    std::vector<std::string> ranks;
    for (size_t rank = 0; rank < phase.peers.size(); ++rank) {
        std::vector<std::string> peers;
        for (const auto& [peer, priority] : phase.peers[rank]) peers.push_back(fmt::format("[{},{}]", peer, priority));
        if (!peers.empty()) ranks.push_back(fmt::format("      \"{}\": [{}]", rank, joined(peers, ",")));
    }
    return fmt::format("    {{\"name\": {}, \"from\": {}, \"to\": {}, \"peers\": {{{}{}{}}}}}", quoted(phase.name), phase.from,
                       phase.to ? std::to_string(*phase.to) : "null", ranks.empty() ? "" : "\n", joined(ranks, ",\n"),
                       ranks.empty() ? "" : "\n    ");
}

/// Returns `"name": [`, one entry per line, `]`.
std::string list_text(const char* name, const std::vector<std::string>& entries) {
    return fmt::format(",\n  \"{}\": [{}{}{}]", name, entries.empty() ? "" : "\n", joined(entries, ",\n"),
                       entries.empty() ? "" : "\n  ");
}

bool says_anything(const Plan& plan) {
    return !plan.collectives.empty() || plan.eager_limit || !plan.host_of_rank.empty() ||
           std::any_of(plan.phases.begin(), plan.phases.end(), [](const PlannedPhase& phase) {
               return std::any_of(phase.peers.begin(), phase.peers.end(), [](const auto& peers) { return !peers.empty(); });
           });
}

}  // namespace

Plan make_plan(const Run& run, const PlanWish& wish) {
    Plan plan;
    plan.application = run.application;
    const uint32_t recorded = run.jobs[0].size;
    plan.size = wish.size > 0 ? wish.size : recorded;
    plan.from = run.files;
    plan.max_direct = wish.max_direct ? *wish.max_direct : what_if(run).knee();
    plan.max_connections = 2 * plan.max_direct;  // leaves room for partners that the plan does not foresee
    const std::vector<Pair> all = add_phases(run, plan);
    if (plan.size != recorded) plan.structure = structure_of(within(run.jobs[0], pairs_of(run)), recorded).name();
    add_placement(run, wish, all, plan);
    if (plan.size == recorded) plan.collectives = choose_algorithms(run);
    plan.eager_limit = choose_eager_limit(run);
    if (!says_anything(plan))
        throw Refusal(run.files[0] +
                      ": no two processes of its first job exchange enough messages for a connection, and nothing else can be "
                      "improved: there is nothing to plan");
    return plan;
}

std::string to_text(const Plan& plan) {
    std::vector<std::string> from, phases, collectives, placement;
    for (const std::string& file : plan.from) from.push_back(quoted(file));
    for (const PlannedPhase& phase : plan.phases) phases.push_back(phase_text(phase));
    for (const PlannedCollective& one : plan.collectives)
        collectives.push_back(
            fmt::format("    {{\"kind\": {}, \"size\": {}, \"processes\": {}, \"algorithm\": {}, "
                        "\"instead_of\": {}, \"seconds\": [{:.3g}, {:.3g}]}}",
                        quoted(one.kind), quoted(one.size), one.processes, quoted(one.algorithm), quoted(one.instead_of),
                        one.before, one.after));
    for (size_t rank = 0; rank < plan.host_of_rank.size(); ++rank)
        placement.push_back(fmt::format("[{},{}]", plan.host_of_rank[rank], rank));
    std::string out = fmt::format("{{\n  \"starling_plan\": 1,\n  \"application\": {},\n  \"size\": {},\n  \"from\": [{}],\n",
                                  quoted(plan.application), plan.size, joined(from, ", "));
    out += fmt::format("  \"max_direct\": {},\n  \"max_connections\": {}", plan.max_direct, plan.max_connections);
    out += list_text("phases", phases);
    if (!collectives.empty()) out += list_text("collectives", collectives);
    if (plan.eager_limit) out += fmt::format(",\n  \"eager_limit\": {}", *plan.eager_limit);
    if (!placement.empty()) out += fmt::format(",\n  \"placement\": [{}]", joined(placement, ", "));
    return out + "\n}\n";
}

}  // namespace starling::analysis
