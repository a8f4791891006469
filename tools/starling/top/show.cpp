#include "starling/top/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/counters.h"

namespace starling::top {

namespace {

using OrderedJson = nlohmann::ordered_json;

size_t row(const char* counter) {
    size_t count = 0;
    return static_cast<size_t>(find_counter(counter) - counter_table(count));
}

/// A path that messages take, with its counters of messages and bytes.
struct Path {
    const char* title;
    size_t messages, bytes;
    bool part = false;  ///< true: the messages are included in those of the preceding path
};
const std::vector<Path>& paths() {
    static const std::vector<Path> all{
        {"ring", row("messages_ring"), row("bytes_ring")},   {"inbox", row("messages_inbox"), row("bytes_inbox")},
        {"copy", row("copies"), row("bytes_copied")},        {"udp", row("messages_udp"), row("bytes_udp")},
        {"tcp", row("messages_tcp"), row("bytes_tcp")},      {"verbs", row("messages_verbs"), row("bytes_verbs")},
        {"rc", row("messages_rc"), row("bytes_rc")},         {"rc ring", row("messages_rc_ring"), row("bytes_rc_ring"), true},
        {"read", row("reads_rdma"), row("bytes_read_rdma")}, {"write", row("writes_rdma"), row("bytes_written_rdma")},
        {"group", row("group_messages"), row("group_bytes")}};
    return all;
}

/// Returns whether the path is multicast, for which the number of groups and the retransmissions are shown too.
bool is_group(const Path& path) { return path.messages == paths().back().messages; }

double number(const RankView& rank, size_t row, bool total) {
    if (!rank.counted) return 0;
    return total ? static_cast<double>(rank.values[row]) : rank.rates[row];
}

double sum_over_paths(const RankView& rank, size_t Path::*what, bool total) {
    double sum = 0;
    for (const Path& path : paths())
        if (!path.part) sum += number(rank, path.*what, total);
    return sum;
}

/// Returns the value by which ranks are sorted in descending order.
double weight(const RankView& rank, const Style& style) {
    switch (style.order) {
        case Order::waiting:
            return rank.waiting;
        case Order::messages:
            return sum_over_paths(rank, &Path::messages, style.totals);
        case Order::bytes:
            return sum_over_paths(rank, &Path::bytes, style.totals);
        case Order::cpu:
            return rank.cores;
        case Order::memory:
            return static_cast<double>(rank.memory_kb);
        case Order::rank:
            break;
    }
    return 0;
}

bool used(const Path& path, const std::vector<JobView>& jobs) {
    for (const JobView& job : jobs)
        for (const RankView& rank : job.ranks)
            if (rank.counted && rank.values[path.messages] > 0) return true;
    return false;
}

std::string age(double seconds) {
    const auto whole = static_cast<int64_t>(seconds);
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string head_of(const JobView& job) {
    std::set<std::string> hosts;
    for (const RankView& rank : job.ranks) hosts.insert(rank.host);
    const std::string on = hosts.size() == 1 ? "on " + *hosts.begin() : fmt::format("on {} hosts", hosts.size());
    const std::string where = job.ranks.size() == job.size
                                  ? fmt::format("{} rank{} {}", job.size, job.size == 1 ? "" : "s", on)
                                  : fmt::format("{} of {} ranks seen, {} of {}", job.ranks.size(), job.size, on, job.hosts);
    return fmt::format("job {:016x}  {}  {}, {}, {}, launcher {}", job.id, job.command, where, job.state, age(job.age),
                       job.owner_pid);
}

/// The columns of the list: paths that carried messages, and whether a rank has marked a phase.
struct Columns {
    std::vector<Path> paths;
    bool phases = false;
};

Columns columns_of(const std::vector<JobView>& jobs) {
    Columns columns;
    for (const Path& path : paths())
        if (used(path, jobs)) columns.paths.push_back(path);
    for (const JobView& job : jobs)
        for (const RankView& rank : job.ranks) columns.phases |= !rank.phase.empty();
    return columns;
}

std::string titles(const Columns& columns, const Style& style) {
    const std::vector<Path>& shown = columns.paths;
    std::string line = fmt::format("{:>6} {:<12} {:>8} {:<11} {:>5} {:>4} {:>5} {:<15}", "rank", "host", "pid", "state",
                                   "wait%", "cpu%", "mem", "call");
    if (columns.phases) line += fmt::format(" {:<12}", "phase");
    line += fmt::format(" {:>5}", "conns");
    for (const Path& path : shown) {
        const std::string messages = path.title + std::string(style.totals ? " msg" : " msg/s");
        line += fmt::format(" | {:>11} {:>6}", messages, style.totals ? "B" : "B/s");
        if (is_group(path)) line += fmt::format(" {:>6} {:>6} {:>7}", "member", "ready", style.totals ? "repeats" : "rep/s");
    }
    return line;
}

std::string line_of(const RankView& rank, const Columns& columns, const Style& style) {
    static const size_t kConnections = row("connections"), kGroups = row("groups"), kReady = row("groups_usable"),
                        kRepeats = row("group_repeats");
    const std::vector<Path>& shown = columns.paths;
    const std::string connections = rank.counted ? fmt::format("{}", rank.values[kConnections]) : "-";
    std::string line =
        fmt::format("{:>6} {:<12.12} {:>8} {:<11} {:>5.0f} {:>4.0f} {:>5} {:<15.15}", rank.rank, rank.host, rank.pid,
                    name(rank.doing), rank.waiting * 100, rank.cores * 100,
                    short_number(static_cast<double>(rank.memory_kb) * 1024), rank.call.empty() ? "-" : rank.call);
    if (columns.phases) line += fmt::format(" {:<12.12}", rank.phase.empty() ? "-" : rank.phase);
    line += fmt::format(" {:>5}", connections);
    for (const Path& path : shown) {
        line += fmt::format(" | {:>11} {:>6}", short_number(number(rank, path.messages, style.totals)),
                            short_number(number(rank, path.bytes, style.totals)));
        if (is_group(path))
            line += fmt::format(" {:>6} {:>6} {:>7}", rank.counted ? rank.values[kGroups] : 0,
                                rank.counted ? rank.values[kReady] : 0, short_number(number(rank, kRepeats, style.totals)));
    }
    return line;
}

void add(std::vector<ListLine>& to, ListLine line, const Style& style, const char* escape = "") {
    if (style.width > 0 && line.text.size() > style.width) line.text.resize(style.width);
    if (style.color && *escape) line.text = escape + line.text + "\033[0m";
    if (line.rank && line.rank == style.selected) line.text = "\033[7m" + line.text + "\033[0m";
    to.push_back(std::move(line));
}

const char* color(Doing doing) {
    switch (doing) {
        case Doing::waiting:
            return "\033[33m";
        case Doing::asleep:
            return "\033[2m";
        case Doing::failed:
        case Doing::not_started:
            return "\033[31m";
        default:
            return "";
    }
}

OrderedJson json_of(const RankView& rank) {
    OrderedJson out{{"rank", rank.rank},       {"host", rank.host},     {"pid", rank.pid},     {"state", name(rank.doing)},
                    {"waiting", rank.waiting}, {"asleep", rank.asleep}, {"cores", rank.cores}, {"memory_kb", rank.memory_kb}};
    if (!rank.call.empty()) out["call"] = rank.call;
    if (!rank.phase.empty()) out["phase"] = rank.phase;
    if (rank.core != job::kNotBound) out["core"] = rank.core;
    if (!rank.counted) return out;
    size_t count = 0;
    const Counter* rows = counter_table(count);
    for (size_t i = 0; i < count; ++i) {
        out["counters"][rows[i].name] = rank.values[i];
        if (rows[i].kind != CounterKind::level) out["per_second"][rows[i].name] = rank.rates[i];
    }
    return out;
}

}  // namespace

std::string short_number(double value) {
    constexpr const char kUnits[] = " kMGTPE";
    const char* unit = kUnits;
    while (value >= 999.5 && unit[1]) value /= 1000, ++unit;
    if (unit == kUnits) return fmt::format("{:.0f}", value);
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, digits, *unit);
}

void sort_ranks(std::vector<JobView>& jobs, const Style& style) {
    for (JobView& job : jobs) {
        std::stable_sort(job.ranks.begin(), job.ranks.end(), [&](const RankView& a, const RankView& b) {
            const double of_a = weight(a, style), of_b = weight(b, style);
            return of_a != of_b ? of_a > of_b : a.rank < b.rank;
        });
    }
}

std::vector<ListLine> lines(const std::vector<JobView>& jobs, const Style& style) {
    const Columns columns = columns_of(jobs);
    std::vector<ListLine> out;
    for (const JobView& job : jobs) {
        add(out, {head_of(job)}, style, "\033[1m");
        add(out, {titles(columns, style)}, style, "\033[7m");
        for (const RankView& rank : job.ranks) add(out, {line_of(rank, columns, style), &rank}, style, color(rank.doing));
        add(out, {""}, style);
    }
    return out;
}

std::string json(const std::vector<JobView>& jobs, double interval) {
    OrderedJson out{{"interval_s", interval}, {"jobs", OrderedJson::array()}};
    for (const JobView& job : jobs) {
        OrderedJson entry{{"id", fmt::format("{:016x}", job.id)},
                          {"command", job.command},
                          {"host", job.host},
                          {"launcher", job.owner_pid},
                          {"state", job.state},
                          {"size", job.size},
                          {"hosts", job.hosts},
                          {"age_s", job.age},
                          {"ranks", OrderedJson::array()}};
        for (const RankView& rank : job.ranks) entry["ranks"].push_back(json_of(rank));
        out["jobs"].push_back(std::move(entry));
    }
    return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace starling::top
