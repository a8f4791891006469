#include "pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rank_rows.h"

namespace starling::analysis {

namespace {

constexpr uint32_t kMostBins = 128;  ///< maximum rows of the heat map; a row may stand for several processes
constexpr size_t kMostFrames = 300;  ///< maximum positions of the slider over the run's phases
constexpr size_t kMostSteps = 120;   ///< maximum steps of the time line of connections

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

Data frames(const Run& run, uint32_t ranks_per_bin) {
    const size_t together = (run.spans.size() + kMostFrames - 1) / kMostFrames;
    Data out = Data::array();
    for (size_t begin = 0; begin < run.spans.size(); begin += together) {
        Frame frame;
        for (size_t i = begin; i < std::min(begin + together, run.spans.size()); ++i) add(frame, run.spans[i], ranks_per_bin);
        Data cells = Data::array();
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
Data blocks(const Run& run) {
    Data out = Data::array();
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
Data connections(const Run& run) {
    Data out{{"step", 0}, {"open", Data::array()}, {"opened", Data::array()}, {"closed", Data::array()}};
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

}  // namespace

Data pictures(const Run& run) {
    const uint32_t ranks_per_bin = (run.processes + kMostBins - 1) / kMostBins;
    return {{"ranks_per_bin", ranks_per_bin},
            {"blocks", blocks(run)},
            {"frames", frames(run, ranks_per_bin)},
            {"connections", connections(run)},
            {"ranks", rank_rows(run, ranks_per_bin)}};
}

}  // namespace starling::analysis
