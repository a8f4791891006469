#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "headline.h"
#include "rank_output.h"
#include "ranks.h"
#include "report_parts.h"

namespace starling::analysis {

namespace {

constexpr int kVersion = 1;  ///< version of the report's fields

/// Returns the run with only the spans of one phase.
Run only(const Run& run, const std::string& phase) {
    Run out = run;
    std::erase_if(out.spans, [&](const Span& span) { return span.name != phase; });
    // These are recorded for the whole run only, so they say nothing about one phase.
    out.collectives.clear();
    out.waiting.clear();
    out.file_calls.clear();
    out.core_use.clear();
    if (!out.spans.empty()) return out;
    std::set<std::string> names;
    for (const Span& span : run.spans) names.insert("'" + span.name + "'");
    throw Refusal(fmt::format("{} has no phase '{}'; it has {}", run.files[0], phase, fmt::join(names, ", ")));
}

/// Adds what ran, when and where.
void add_head(const Run& run, Data& out) {
    double seconds = 0;
    for (const Span& span : run.spans) seconds = std::max(seconds, span.began + span.seconds);
    Data jobs = Data::array();
    std::map<std::string, uint32_t> counts;
    std::vector<std::string> hosts;
    for (const Job& job : run.jobs) {
        jobs.push_back({{"job", job.number}, {"first", job.first}, {"size", job.size}});
        for (const std::string& host : job.hosts)
            if (counts.try_emplace(host, 0).second) hosts.push_back(host);
        for (const uint32_t host : job.host_of_rank)
            if (host < job.hosts.size()) ++counts[job.hosts[host]];
    }
    Data named = Data::array();
    for (const std::string& host : hosts) named.push_back({{"host", host}, {"processes", counts[host]}});
    out["report"] = kVersion;
    out["application"] = run.application;
    out["command"] = run.command;
    out["files"] = run.files;
    out["started"] = run.started;
    out["starling"] = run.starling;
    out["processes"] = run.processes;
    out["jobs"] = std::move(jobs);
    out["hosts"] = std::move(named);
    out["seconds"] = seconds;
    out["ended_early"] = run.ended_early;
}

}  // namespace

Data process_as_data(const Run& run, uint32_t process) {
    return {{"job", run.job_of(process).number}, {"rank", run.rank_of(process)}, {"host", run.host_of(process)}};
}

void add_rows(Data& out, const char* name, Data rows, const ReportWish& wish) {
    out["rows"][name] = rows.size();
    if (rows.size() > wish.rows) rows.erase(rows.begin() + static_cast<ptrdiff_t>(wish.rows), rows.end());
    out[name] = std::move(rows);
}

Data waits_of(const Waits& waits) {
    return {{"late_sender", waits.late_sender},
            {"late_receiver", waits.late_receiver},
            {"collective", waits.collective},
            {"other", waits.other}};
}

Data report(const Run& all, const ReportWish& wish) {
    const bool one_phase = !wish.phase.empty();
    const Run chosen = one_phase ? only(all, wish.phase) : Run{};
    const Run& run = one_phase ? chosen : all;
    Data out;
    add_head(run, out);
    const RankTable table = rank_table(run);
    out["headline"] = headline(run, table).text;
    add_times(run, out);
    out["rows"]["ranks"] = table.rows.size();
    out["ranks"] = ranks_as_data(run, table, wish.ranks);
    // What is recorded by call site is not recorded by phase, so it is left out for one phase.
    if (!one_phase) {
        add_places(run, wish, out);
        add_files(run, wish, out);
    }
    add_phases(run, wish, out);
    if (wish.timeline) add_timeline(run, out);
    add_sizes(run, out);
    add_traffic(run, wish, out);
    add_connections(run, out);
    return out;
}

}  // namespace starling::analysis
