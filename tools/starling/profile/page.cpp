#include "page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "headline.h"
#include "page_files.h"
#include "rank_output.h"
#include "show.h"
#include "what_if.h"

namespace starling::analysis {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr uint32_t kMostBins = 128;  ///< maximum rows of the heat map; a row may stand for several processes
constexpr size_t kMostFrames = 300;  ///< maximum positions of the slider over the run's phases
constexpr size_t kMostSteps = 120;   ///< maximum steps of the time line of connections
constexpr size_t kMostSites = 12;
constexpr size_t kMostRows = 64;  ///< maximum rows of the table of ranks

/// Rounds a number: three digits suffice for display, and keep the page small.
double rounded(double number) {
    if (number == 0) return 0;
    const double unit = std::pow(10, std::floor(std::log10(std::abs(number))) - 3);
    return unit < 1 ? std::round(number / unit) * unit : std::round(number);
}

/// The heat map's content at one position of the slider: consecutive spans.
struct Frame {
    const Span* first = nullptr;
    const Span* last = nullptr;
    double seconds = 0;
    Waits waits;
    Amount all, on_connection;
    std::map<std::pair<uint32_t, uint32_t>, std::array<double, 3>> cells;  ///< messages, bytes, messages on connections
};

std::string name_of(const Span& span) {
    const std::string name = span.name.empty() ? "start" : span.name;
    return span.to == span.from ? fmt::format("{} {}", name, span.from) : fmt::format("{} {}–{}", name, span.from, span.to);
}

void add(Frame& frame, const Span& span, uint32_t ranks_per_bin) {
    if (!frame.first) frame.first = &span;
    frame.last = &span;
    frame.seconds += span.seconds;
    frame.waits.add(span.waits);
    frame.all += span.all();
    frame.on_connection += span.on_connection();
    for (const Sent& sent : span.sent) frame.all += sent.in_memory;
    for (const Part& part : span.parts) {
        for (uint32_t i = part.first; i < part.first + part.count; ++i) {
            const Sent& sent = span.sent[i];
            auto& cell = frame.cells[{part.process / ranks_per_bin, sent.to / ranks_per_bin}];
            cell[0] += sent.all.messages + sent.in_memory.messages;
            cell[1] += sent.all.bytes + sent.in_memory.bytes;
            cell[2] += sent.on_connection.messages;
        }
    }
}

OrderedJson frames(const Run& run, uint32_t ranks_per_bin) {
    const size_t together = (run.spans.size() + kMostFrames - 1) / kMostFrames;
    OrderedJson out = OrderedJson::array();
    for (size_t begin = 0; begin < run.spans.size(); begin += together) {
        Frame frame;
        for (size_t i = begin; i < std::min(begin + together, run.spans.size()); ++i) add(frame, run.spans[i], ranks_per_bin);
        OrderedJson cells = OrderedJson::array();
        for (const auto& [at, cell] : frame.cells)
            for (const double number :
                 {double(at.first), double(at.second), rounded(cell[0]), rounded(cell[1]), rounded(cell[2])})
                cells.push_back(number);
        const std::string name = name_of(*frame.first);
        out.push_back(
            {{"name", frame.first == frame.last ? name : name + " … " + name_of(*frame.last)},
             {"phase", frame.first->name.empty() ? "start" : frame.first->name},
             {"began", rounded(frame.first->began)},
             {"seconds", rounded(frame.seconds)},
             {"messages", rounded(frame.all.messages)},
             {"bytes", rounded(frame.all.bytes)},
             {"direct", rounded(frame.on_connection.messages)},
             {"waits", {frame.waits.late_sender, frame.waits.late_receiver, frame.waits.collective, frame.waits.other}},
             {"cells", std::move(cells)}});
    }
    return out;
}

/// Returns blocks of consecutive processes on one host.
OrderedJson hosts(const Run& run) {
    OrderedJson out = OrderedJson::array();
    for (const Job& job : run.jobs) {
        for (uint32_t rank = 0; rank < job.size; ++rank) {
            const std::string& host = run.host_of(job.first + rank);
            if (rank > 0 && out.back()["host"] == host)
                out.back()["count"] = out.back()["count"].get<uint32_t>() + 1;
            else
                out.push_back({{"host", host}, {"job", job.number}, {"first", job.first + rank}, {"count", 1}});
        }
    }
    return out;
}

/// Returns the number of open connections, and those opened and closed, over time.
OrderedJson timeline(const Run& run) {
    OrderedJson out{
        {"step", 0}, {"open", OrderedJson::array()}, {"opened", OrderedJson::array()}, {"closed", OrderedJson::array()}};
    if (run.connections.empty()) return out;
    double end = run.connections.back().when;
    for (const Span& span : run.spans) end = std::max(end, span.began + span.seconds);
    const size_t steps = std::min<size_t>(kMostSteps, std::max<size_t>(40, run.connections.size()));
    const double step = end > 0 ? end / static_cast<double>(steps) : 1;
    std::vector<std::array<uint64_t, 2>> counts(steps, {0, 0});
    for (const ConnectionEvent& event : run.connections) {
        const auto at = static_cast<size_t>(std::max(0.0, event.when / step));
        ++counts[std::min(at, steps - 1)][event.opened ? 0 : 1];
    }
    int64_t open = 0;
    for (const auto& [opened, closed] : counts) {
        open += static_cast<int64_t>(opened) - static_cast<int64_t>(closed);
        out["open"].push_back(std::max<int64_t>(open, 0));
        out["opened"].push_back(opened);
        out["closed"].push_back(closed);
    }
    out["step"] = step;
    return out;
}

OrderedJson sites(const Run& run) {
    std::vector<std::pair<Site, Calls>> sorted(run.collectives.begin(), run.collectives.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    if (sorted.size() > kMostSites) sorted.resize(kMostSites);
    OrderedJson out = OrderedJson::array();
    for (const auto& [site, calls] : sorted)
        out.push_back({{"site", site.site},
                       {"call", site.kind + " " + site.size},
                       {"communicator", fmt::format("{} ({})", site.communicator, site.members)},
                       {"algorithm", site.algorithm + (site.tried ? " (tried)" : "")},
                       {"calls", rounded(calls.calls)},
                       {"bytes", rounded(calls.bytes)},
                       {"seconds", rounded(calls.seconds)}});
    return out;
}

OrderedJson waiting_of(const Run& run) {
    std::vector<std::pair<WaitPlace, Waits>> sorted(run.waiting.begin(), run.waiting.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.sum() > b.second.sum(); });
    if (sorted.size() > kMostSites) sorted.resize(kMostSites);
    OrderedJson out = OrderedJson::array();
    for (const auto& [place, waits] : sorted)
        out.push_back(
            {{"site", place.site},
             {"call", place.function},
             {"waits",
              {rounded(waits.late_sender), rounded(waits.late_receiver), rounded(waits.collective), rounded(waits.other)}}});
    return out;
}

OrderedJson curves(const Run& run) {
    const WhatIf what = what_if(run);
    return {{"static", what.fixed},
            {"on_demand", what.on_demand},
            {"plan", what.planned},
            {"recorded", what.recorded},
            {"knee", what.knee()}};
}

OrderedJson data(const Run& run) {
    const uint32_t ranks_per_bin = (run.processes + kMostBins - 1) / kMostBins;
    double process_seconds = 0;
    for (const Span& span : run.spans)
        for (const Part& part : span.parts) process_seconds += part.seconds / static_cast<double>(run.files.size());
    OrderedJson jobs = OrderedJson::array();
    for (const Job& job : run.jobs) jobs.push_back({{"number", job.number}, {"first", job.first}, {"size", job.size}});
    const RankTable table = rank_table(run);
    return {{"application", run.application},
            {"headline", headline(run, table).text},
            {"ranks", ranks_as_json(run, table, kMostRows)},
            {"command", fmt::format("{}", fmt::join(run.command, " "))},
            {"files", run.files},
            {"processes", run.processes},
            {"ranks_per_bin", ranks_per_bin},
            {"process_seconds", process_seconds},
            {"jobs", jobs},
            {"hosts", hosts(run)},
            {"frames", frames(run, ranks_per_bin)},
            {"timeline", timeline(run)},
            {"sites", sites(run)},
            {"waiting", waiting_of(run)},
            {"curves", curves(run)}};
}

/// Encodes JSON for a script element, so that a "</script>" in a name can't end it.
std::string embedded(const OrderedJson& json) {
    std::string out;
    for (const char c : json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<' || c == '>' || c == '&' || c == '"')
            out += fmt::format("&#{};", static_cast<int>(c));
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string page(const Run& run) {
    if (chart_library().empty())
        throw Refusal(
            "the page needs Chart.js, which was not found when starling was built: install libjs-chart.js, "
            "then build starling again");
    std::string out;
    std::string_view rest = page_template();
    const std::pair<std::string_view, std::string> parts[] = {{"{{TITLE}}", escaped(run.application)},
                                                              {"{{CHART}}", std::string(chart_library())},
                                                              {"{{DATA}}", embedded(data(run))}};
    for (const auto& [mark, text] : parts) {
        const size_t at = rest.find(mark);
        out.append(rest.substr(0, at)).append(text);
        rest.remove_prefix(at + mark.size());
    }
    return out.append(rest);
}

}  // namespace starling::analysis
