// The parts of a report on time: waits, call sites, files, phases, timeline.
#include <algorithm>
#include <map>

#include "report_parts.h"

namespace starling::analysis {

namespace {

/// The sums over the occurrences of a phase.
struct PhaseSum {
    std::string mark;
    double occurrences = 0, seconds = 0;
    Amount all, on_connection, in_memory;
    Waits waits;
    double partners = 0, parts = 0;

    void add(const Span& span) {
        if (mark.empty()) mark = span.mark;
        occurrences += span.occurrences();
        seconds += span.seconds;
        all += span.all();
        for (const Sent& sent : span.sent) in_memory += sent.in_memory;
        on_connection += span.on_connection();
        waits.add(span.waits);
        partners += static_cast<double>(span.sent.size());
        parts += static_cast<double>(span.parts.size());
    }
};

/// The sums over the calls for one file.
struct FileTotal {
    double opened = 0, read = 0, written = 0, seconds = 0;

    void add(const std::string& function, const Calls& calls) {
        const auto names = [&](const char* word) { return function.find(word) != std::string::npos; };
        if (names("open")) opened += calls.calls;
        if (names("read")) read += calls.bytes;
        if (names("write")) written += calls.bytes;
        seconds += calls.seconds;
    }
};

/// Returns entries of a map, those with the largest weight first.
template <class Map, class Weight>
auto heaviest_first(const Map& map, Weight weight) {
    std::vector<std::pair<typename Map::key_type, typename Map::mapped_type>> sorted(map.begin(), map.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const auto& a, const auto& b) { return weight(a.second) > weight(b.second); });
    return sorted;
}

}  // namespace

void add_times(const Run& run, Data& out) {
    double seconds = 0;
    Waits waits;
    for (const Span& span : run.spans) {
        for (const Part& part : span.parts) seconds += part.seconds;
        waits.add(span.waits);
    }
    out["process_seconds"] = seconds / static_cast<double>(run.files.size());
    out["waited_seconds"] = waits.sum();
    out["waits"] = waits_of(waits);
}

void add_places(const Run& run, const ReportWish& wish, Data& out) {
    Data waiting = Data::array(), collectives = Data::array();
    for (const auto& [place, waits] : heaviest_first(run.waiting, [](const Waits& each) { return each.sum(); }))
        waiting.push_back(
            {{"site", place.site}, {"call", place.function}, {"seconds", waits.sum()}, {"waits", waits_of(waits)}});
    for (const auto& [site, calls] : heaviest_first(run.collectives, [](const Calls& each) { return each.seconds; }))
        collectives.push_back({{"site", site.site},
                               {"call", site.kind},
                               {"size", site.size},
                               {"communicator", site.communicator},
                               {"members", site.members},
                               {"algorithm", site.algorithm},
                               {"tried", site.tried},
                               {"calls", calls.calls},
                               {"bytes", calls.bytes},
                               {"seconds", calls.seconds}});
    add_rows(out, "waiting", std::move(waiting), wish);
    add_rows(out, "collectives", std::move(collectives), wish);
}

void add_files(const Run& run, const ReportWish& wish, Data& out) {
    Data files = Data::array(), places = Data::array();
    std::map<std::string, FileTotal> totals;
    for (const auto& [place, calls] : run.file_calls) totals[place.file].add(place.function, calls);
    for (const auto& [file, total] : heaviest_first(totals, [](const FileTotal& each) { return each.seconds; }))
        files.push_back({{"file", file},
                         {"opened", total.opened},
                         {"read_bytes", total.read},
                         {"written_bytes", total.written},
                         {"seconds", total.seconds}});
    for (const auto& [place, calls] : heaviest_first(run.file_calls, [](const Calls& each) { return each.seconds; }))
        places.push_back({{"site", place.site},
                          {"call", place.function},
                          {"file", place.file},
                          {"calls", calls.calls},
                          {"bytes", calls.bytes},
                          {"seconds", calls.seconds}});
    add_rows(out, "accessed_files", std::move(files), wish);
    add_rows(out, "file_calls", std::move(places), wish);
}

void add_phases(const Run& run, const ReportWish& wish, Data& out) {
    std::map<std::string, PhaseSum> sums;
    for (const Span& span : run.spans) sums[span.name].add(span);
    Data rows = Data::array();
    for (const auto& [name, sum] : heaviest_first(sums, [](const PhaseSum& each) { return each.seconds; }))
        rows.push_back({{"phase", name},
                        {"mark", sum.mark},
                        {"times", sum.occurrences},
                        {"seconds", sum.seconds},
                        {"waits", waits_of(sum.waits)},
                        {"messages", sum.all.messages + sum.in_memory.messages},
                        {"bytes", sum.all.bytes + sum.in_memory.bytes},
                        {"partners", sum.parts > 0 ? sum.partners / sum.parts : 0},
                        {"connectable", sum.all.messages},
                        {"on_connections", sum.on_connection.messages}});
    add_rows(out, "phases", std::move(rows), wish);
}

void add_timeline(const Run& run, Data& out) {
    std::vector<Data> lines(run.processes, Data::array());
    const double files = static_cast<double>(run.files.size());
    for (const Span& span : run.spans) {
        for (const Part& part : span.parts)
            lines[part.process].push_back({{"phase", span.name},
                                           {"from", span.from},
                                           {"to", span.to},
                                           {"began", part.began},
                                           {"seconds", part.seconds},
                                           {"waited", part.waits.sum() * files}});
    }
    Data timeline = Data::array();
    for (uint32_t process = 0; process < run.processes; ++process) {
        timeline.push_back(process_as_data(run, process));
        timeline.back()["phases"] = std::move(lines[process]);
    }
    out["timeline"] = std::move(timeline);
}

}  // namespace starling::analysis
