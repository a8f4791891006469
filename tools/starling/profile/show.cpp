#include "show.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rank_output.h"
#include "table.h"
#include "what_if.h"

namespace starling::analysis {

namespace {

constexpr size_t kMostHosts = 8;  ///< maximum columns of the table of hosts, and hosts named in the head

double number(const Data& object, const char* name) { return object.at(name).get<double>(); }
const std::string& string(const Data& object, const char* name) { return object.at(name).get_ref<const std::string&>(); }

double sum_of_waits(const Data& waits) {
    double sum = 0;
    for (const Data& seconds : waits) sum += seconds.get<double>();
    return sum;
}

std::string plural(double count, const char* what) {
    return fmt::format("{} {}{}", short_number(count), what, count == 1 ? "" : "s");
}

/// Returns a sentence on the rows of a table that are not shown.
std::string and_more(const Data& report, const char* name) {
    const size_t all = report["rows"][name].get<size_t>(), shown = report[name].size();
    return all > shown ? fmt::format("  … and {} more\n", all - shown) : std::string();
}

std::string hosts_text(const Data& hosts) {
    std::string out;
    for (size_t i = 0; i < hosts.size() && i < kMostHosts; ++i)
        out += fmt::format("{}{} ({})", i > 0 ? ", " : "", string(hosts[i], "host"), number(hosts[i], "processes"));
    if (hosts.size() > kMostHosts) out += fmt::format(" and {} more", hosts.size() - kMostHosts);
    return out;
}

std::string head(const Data& report) {
    const double processes = number(report, "processes");
    const Data& hosts = report["hosts"];
    std::string out =
        fmt::format("{}: {} on {}", string(report, "application"), plural(processes, processes == 1 ? "process" : "processe"),
                    plural(static_cast<double>(hosts.size()), "host"));
    if (report["jobs"].size() > 1) out += fmt::format(" in {} jobs", report["jobs"].size());
    out += fmt::format(", {}", short_time(number(report, "seconds")));
    if (report["files"].size() > 1) out += fmt::format("; the mean of {} runs", report["files"].size());
    out += fmt::format("\n  {}\n", fmt::join(report["command"].get<std::vector<std::string>>(), " "));
    const std::string &started = string(report, "started"), &version = string(report, "starling");
    if (!started.empty()) out += fmt::format("  started {} with Starling {}\n", started, version.empty() ? "?" : version);
    out += fmt::format("  {} (processes): {}\n", hosts.size() == 1 ? "host" : "hosts", hosts_text(hosts));
    const double early = number(report, "ended_early");
    if (early > 0)
        out += fmt::format("  {} ended early: their data after the last complete phase is missing\n",
                           plural(early, early == 1 ? "process" : "processe"));
    return out;
}

std::string times(const Data& report) {
    const double all = number(report, "process_seconds"), waited = number(report, "waited_seconds");
    if (all <= 0) return {};
    const Data& waits = report["waits"];
    Table table("lrr", {"", "time", "of all time"});
    const auto row = [&](const char* name, double seconds) { table.add({name, short_time(seconds), percent(seconds, all)}); };
    row("not waiting", std::max(0.0, all - waited));
    row("waited for a message that was sent late", number(waits, "late_sender"));
    row("waited for a receiver that was late", number(waits, "late_receiver"));
    row("waited for others in a collective call", number(waits, "collective"));
    row("waited for anything else", number(waits, "other"));
    return fmt::format("\nWhere the time goes, all processes together (waited: {} of {})\n", short_time(waited),
                       short_time(all)) +
           table.text();
}

std::string waiting_places(const Data& report) {
    if (!report.contains("waiting") || report["waiting"].empty()) return {};
    Table table("llrrrrr", {"site", "call", "late sender", "late receiver", "collective", "other", "of all time"});
    for (const Data& place : report["waiting"]) {
        const Data& waits = place["waits"];
        table.add({cut(string(place, "site"), 36), string(place, "call"), short_time(number(waits, "late_sender")),
                   short_time(number(waits, "late_receiver")), short_time(number(waits, "collective")),
                   short_time(number(waits, "other")), percent(number(place, "seconds"), number(report, "process_seconds"))});
    }
    return "\nWaits by call site, all processes together\n" + table.text() + and_more(report, "waiting");
}

std::string collectives(const Data& report) {
    if (!report.contains("collectives") || report["collectives"].empty()) return {};
    Table table("llllrrrrr", {"site", "call", "communicator", "algorithm", "calls", "bytes", "time", "a call", "of all time"});
    for (const Data& row : report["collectives"]) {
        const double calls = number(row, "calls"), seconds = number(row, "seconds");
        table.add({cut(string(row, "site"), 36), string(row, "call") + " " + string(row, "size"),
                   fmt::format("{} ({})", cut(string(row, "communicator"), 20), number(row, "members")),
                   string(row, "algorithm") + (row["tried"] == true ? " (tried)" : ""), short_number(calls),
                   short_bytes(number(row, "bytes")), short_time(seconds), short_time(calls > 0 ? seconds / calls : 0),
                   percent(seconds, number(report, "process_seconds"))});
    }
    return "\nCollective calls, all processes together\n" + table.text() + and_more(report, "collectives");
}

std::string files(const Data& report) {
    if (!report.contains("file_calls") || report["file_calls"].empty()) return {};
    Table sums("lrrrrr", {"file", "opened", "read", "written", "time", "of all time"});
    for (const Data& row : report["accessed_files"])
        sums.add({cut(string(row, "file"), 40), short_number(number(row, "opened")), short_bytes(number(row, "read_bytes")),
                  short_bytes(number(row, "written_bytes")), short_time(number(row, "seconds")),
                  percent(number(row, "seconds"), number(report, "process_seconds"))});
    Table places("lllrrrr", {"site", "call", "file", "calls", "bytes", "time", "a call"});
    for (const Data& row : report["file_calls"]) {
        const double calls = number(row, "calls"), seconds = number(row, "seconds");
        places.add({cut(string(row, "site"), 36), string(row, "call"), cut(string(row, "file"), 28), short_number(calls),
                    short_bytes(number(row, "bytes")), short_time(seconds), short_time(calls > 0 ? seconds / calls : 0)});
    }
    return "\nFiles, all processes together\n" + sums.text() + and_more(report, "accessed_files") +
           "\nCalls for files by call site, all processes together\n" + places.text() + and_more(report, "file_calls");
}

std::string phases(const Data& report) {
    Table table("llrrrrrrr", {"phase", "mark", "times", "time", "waited", "messages", "bytes", "partners", "on connections"});
    for (const Data& row : report["phases"]) {
        const std::string& name = string(row, "phase");
        table.add({name.empty() ? "(before the first)" : cut(name, 32), string(row, "mark"), short_number(number(row, "times")),
                   short_time(number(row, "seconds")),
                   percent(sum_of_waits(row["waits"]), number(row, "seconds") * number(report, "processes")),
                   short_number(number(row, "messages")), short_bytes(number(row, "bytes")),
                   fmt::format("{:.1f}", number(row, "partners")),
                   percent(number(row, "on_connections"), number(row, "connectable"))});
    }
    return "\nPhases (time: the processes' mean; partners: of a process in an occurrence)\n" + table.text() +
           and_more(report, "phases");
}

std::string sizes(const Data& report) {
    double all = 0, bytes = 0;
    for (const Data& row : report["sizes"]) {
        all += number(row, "messages");
        bytes += number(row, "bytes");
    }
    if (all == 0) return {};
    Table table("rrrlrr", {"up to", "messages", "", "", "bytes", ""});
    for (const Data& row : report["sizes"]) {
        const double messages = number(row, "messages");
        std::string bar;
        for (int i = 0; i < static_cast<int>(30 * messages / all + 0.5); ++i) bar += "█";
        table.add({binary_bytes(number(row, "most")), short_number(messages), percent(messages, all), bar,
                   short_bytes(number(row, "bytes")), percent(number(row, "bytes"), bytes)});
    }
    return "\nMessages by size\n" + table.text();
}

std::string pairs(const Data& report) {
    Table table("llrrrr", {"ranks", "hosts", "messages", "", "bytes", "on connections"});
    for (const Data& pair : report["pairs"]) {
        const Data &a = pair["a"], &b = pair["b"];
        const std::string &one = string(a, "host"), &other = string(b, "host");
        table.add({name_of(report, a) + " - " + name_of(report, b), one == other ? one : one + " - " + other,
                   short_number(number(pair, "messages")), percent(number(pair, "messages"), number(report, "pair_messages")),
                   short_bytes(number(pair, "bytes")), percent(number(pair, "on_connections"), number(pair, "connectable"))});
    }
    if (table.empty()) return "\nNo messages between processes.\n";
    return fmt::format("\nPairs with the most messages (both directions; {} of {} pairs)\n", report["pairs"].size(),
                       report["rows"]["pairs"].get<size_t>()) +
           table.text();
}

std::string between_hosts(const Data& report) {
    const Data& hosts = report["hosts"];
    if (hosts.size() < 2 || hosts.size() > kMostHosts) return {};
    std::vector<std::string> header{""};
    for (const Data& host : hosts) header.push_back(cut(string(host, "host"), 12));
    Table table("l" + std::string(hosts.size(), 'r'), header);
    for (size_t i = 0; i < hosts.size(); ++i) {
        const std::string& one = string(hosts[i], "host");
        std::vector<std::string> row{cut(one, 20)};
        for (size_t j = 0; j < hosts.size(); ++j) {
            double bytes = 0;
            for (const Data& entry : report["between_hosts"])
                if (entry["a"] == one && entry["b"] == hosts[j]["host"]) bytes += number(entry, "bytes");
            row.push_back(j < i ? "" : short_bytes(bytes));
        }
        table.add(row);
    }
    return "\nBytes within and between hosts, both directions\n" + table.text();
}

std::string paths(const Data& report) {
    const Data &traffic = report["traffic"], &all = traffic["all"];
    Table table("lrrrr", {"", "messages", "", "bytes", ""});
    const auto row = [&](const char* text, const char* name) {
        const double messages = number(traffic[name], "messages"), bytes = number(traffic[name], "bytes");
        table.add({text, short_number(messages), percent(messages, number(all, "messages")), short_bytes(bytes),
                   percent(bytes, number(all, "bytes"))});
    };
    row("small (to 1 KB)", "small");
    row("pool (to the eager limit)", "pool");
    row("large", "large");
    if (number(traffic["puts"], "messages") + number(traffic["gets"], "messages") + number(traffic["updates"], "messages") >
        0) {
        row("puts", "puts");
        row("gets", "gets");
        row("updates", "updates");
        row("of these in mapped memory", "in_memory");
    }
    row("all", "all");
    row("on connections", "on_connections");
    row("between hosts", "between_hosts");
    return "\nTraffic by path\n" + table.text();
}

std::string gain(const Data& report) {
    const Data& curves = report["connections"];
    if (curves["plan"].back() == 0.0) return {};
    const auto knee = curves["knee"].get<uint32_t>();
    std::set<uint32_t> rows{1, 2, 4, 8, 16, kMostDirect, knee};
    rows.erase(0);
    Table table("rrrrl", {"max_direct", "static", "on demand", "plan", ""});
    const auto share = [&](const char* name, uint32_t most) { return percent(curves[name][most].get<double>(), 1); };
    for (const uint32_t most : rows)
        table.add({std::to_string(most), share("static", most), share("on_demand", most), share("plan", most),
                   most == knee ? "<- used by plans" : ""});
    return fmt::format("\nWhat if: messages on connections, by the number that a process may have ({} in this run)\n",
                       percent(number(curves, "recorded"), 1)) +
           table.text();
}

}  // namespace

std::string name_of(const Data& report, const Data& process) {
    const std::string rank = fmt::format("{}", number(process, "rank"));
    return report["jobs"].size() == 1 ? rank : fmt::format("{}.{}", number(process, "job"), rank);
}

std::string show(const Data& report) {
    return without_controls(head(report) + "\n" + string(report, "headline") + "\n" + times(report) + ranks_as_text(report) +
                            waiting_places(report) + collectives(report) + files(report) + phases(report) + sizes(report) +
                            pairs(report) + between_hosts(report) + paths(report) + gain(report));
}

}  // namespace starling::analysis
