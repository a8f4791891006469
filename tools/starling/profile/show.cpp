#include "show.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "headline.h"
#include "pairs.h"
#include "rank_output.h"
#include "table.h"
#include "what_if.h"

namespace starling::analysis {

namespace {

constexpr size_t kMostHosts = 8;  ///< maximum columns of the table of hosts

double process_seconds(const Run& run) {
    double sum = 0;
    for (const Span& span : run.spans)
        for (const Part& part : span.parts) sum += part.seconds;
    return sum / static_cast<double>(run.files.size());
}

std::string plural(double count, const char* what) {
    return fmt::format("{} {}{}", short_number(count), what, count == 1 ? "" : "s");
}

std::string head(const Run& run) {
    std::set<std::string> hosts;
    for (const Job& job : run.jobs) hosts.insert(job.hosts.begin(), job.hosts.end());
    double seconds = 0;
    for (const Span& span : run.spans) seconds = std::max(seconds, span.began + span.seconds);
    std::string out =
        fmt::format("{}: {} on {}", run.application, plural(run.processes, run.processes == 1 ? "process" : "processe"),
                    plural(static_cast<double>(hosts.size()), "host"));
    if (run.jobs.size() > 1) out += fmt::format(" in {} jobs", run.jobs.size());
    out += fmt::format(", {}", short_time(seconds));
    if (run.files.size() > 1) out += fmt::format("; the mean of {} runs", run.files.size());
    out += fmt::format("\n  {}\n", fmt::join(run.command, " "));
    if (run.ended_early > 0)
        out += fmt::format("  {} ended early: their data after the last complete phase is missing\n",
                           plural(static_cast<double>(run.ended_early), run.ended_early == 1 ? "process" : "processe"));
    return out;
}

std::string paths(const Run& run) {
    std::array<Amount, kSizes> sizes;
    std::array<Amount, kAccesses> accesses;
    Amount all, on_connection, between_hosts, in_memory;
    for (const Span& span : run.spans) {
        for (size_t i = 0; i < kSizes; ++i) sizes[i] += span.sizes[i];
        for (size_t i = 0; i < kAccesses; ++i) accesses[i] += span.accesses[i];
        all += span.all();
        for (const Part& part : span.parts) {
            for (uint32_t i = part.first; i < part.first + part.count; ++i) {
                const Sent& sent = span.sent[i];
                on_connection += sent.on_connection;
                in_memory += sent.in_memory;
                if (run.host_of(part.process) != run.host_of(sent.to)) between_hosts += sent.all;
            }
        }
    }
    all += in_memory;
    Table table("lrrrr", {"", "messages", "", "bytes", ""});
    const auto row = [&](const char* name, const Amount& amount) {
        table.add({name, short_number(amount.messages), percent(amount.messages, all.messages), short_bytes(amount.bytes),
                   percent(amount.bytes, all.bytes)});
    };
    row("small (to 1 KB)", sizes[Size::small]);
    row("pool (to the eager limit)", sizes[Size::pool]);
    row("large", sizes[Size::large]);
    if (std::any_of(accesses.begin(), accesses.end(), [](const Amount& amount) { return amount.messages > 0; })) {
        row("puts", accesses[Access::put]);
        row("gets", accesses[Access::get]);
        row("updates", accesses[Access::update]);
        row("of these in mapped memory", in_memory);
    }
    row("all", all);
    row("on connections", on_connection);
    row("between hosts", between_hosts);
    return "\nTraffic by path\n" + table.text();
}

/// The sums over the occurrences of a phase.
struct PhaseSum {
    std::string mark;
    double occurrences = 0, seconds = 0, began = 0;
    Amount all, on_connection, in_memory;
    Waits waits;
    double partners = 0, parts = 0;
};

std::string phases(const Run& run, const ShowWish& wish) {
    std::map<std::string, PhaseSum> sums;
    for (const Span& span : run.spans) {
        const auto [at, fresh] = sums.try_emplace(span.name);
        PhaseSum& sum = at->second;
        if (fresh) {
            sum.mark = span.mark;
            sum.began = span.began;
        }
        sum.occurrences += span.occurrences();
        sum.seconds += span.seconds;
        sum.all += span.all();
        for (const Sent& sent : span.sent) sum.in_memory += sent.in_memory;
        sum.on_connection += span.on_connection();
        sum.waits.add(span.waits);
        sum.partners += static_cast<double>(span.sent.size());
        sum.parts += static_cast<double>(span.parts.size());
    }
    std::vector<std::pair<std::string, PhaseSum>> sorted(sums.begin(), sums.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    Table table("llrrrrrrr", {"phase", "mark", "times", "time", "waited", "messages", "bytes", "partners", "on connections"});
    for (size_t i = 0; i < sorted.size() && i < wish.top; ++i) {
        const auto& [name, sum] = sorted[i];
        const double all = sum.seconds * run.processes;
        table.add({name.empty() ? "(before the first)" : cut(name, 32), sum.mark, short_number(sum.occurrences),
                   short_time(sum.seconds), percent(sum.waits.sum(), all),
                   short_number(sum.all.messages + sum.in_memory.messages), short_bytes(sum.all.bytes + sum.in_memory.bytes),
                   fmt::format("{:.1f}", sum.parts > 0 ? sum.partners / sum.parts : 0),
                   percent(sum.on_connection.messages, sum.all.messages)});
    }
    std::string out = "\nPhases (time: the processes' mean; partners: of a process in an occurrence)\n" + table.text();
    if (sorted.size() > wish.top) out += fmt::format("  … and {} more\n", sorted.size() - wish.top);
    return out;
}

/// Returns the number of messages and accesses.
double talk(const Pair& pair) { return pair.all.messages + pair.in_memory.messages; }

std::string top_pairs(const Run& run, const ShowWish& wish) {
    std::vector<Pair> pairs = pairs_of(run);
    const size_t count = pairs.size();
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& other) { return talk(one) > talk(other); });
    double all = 0;
    for (const Pair& pair : pairs) all += talk(pair);
    Table table("llrrrr", {"ranks", "hosts", "messages", "", "bytes", "on connections"});
    for (size_t i = 0; i < pairs.size() && i < wish.top; ++i) {
        const Pair& pair = pairs[i];
        const std::string &one = run.host_of(pair.a), &other = run.host_of(pair.b);
        table.add({run.name_of(pair.a) + " - " + run.name_of(pair.b), one == other ? one : one + " - " + other,
                   short_number(talk(pair)), percent(talk(pair), all), short_bytes(pair.all.bytes + pair.in_memory.bytes),
                   percent(pair.on_connection.messages, pair.all.messages)});
    }
    if (table.empty()) return "\nNo messages between processes.\n";
    return fmt::format("\nPairs with the most messages (both directions; {} of {} pairs)\n", std::min<size_t>(wish.top, count),
                       count) +
           table.text();
}

std::string between_hosts(const Run& run) {
    std::map<std::string, size_t> numbers;
    std::vector<std::string> names;
    for (const Job& job : run.jobs) {
        for (const std::string& host : job.hosts)
            if (numbers.try_emplace(host, names.size()).second) names.push_back(host);
    }
    if (names.size() < 2 || names.size() > kMostHosts) return {};
    std::vector<std::vector<double>> bytes(names.size(), std::vector<double>(names.size(), 0));
    for (const Pair& pair : pairs_of(run)) {
        const auto one = numbers.find(run.host_of(pair.a)), other = numbers.find(run.host_of(pair.b));
        if (one == numbers.end() || other == numbers.end()) continue;
        const size_t low = std::min(one->second, other->second), high = std::max(one->second, other->second);
        bytes[low][high] += pair.all.bytes + pair.in_memory.bytes;
    }
    std::vector<std::string> header{""};
    for (const std::string& name : names) header.push_back(cut(name, 12));
    Table table("l" + std::string(names.size(), 'r'), header);
    for (size_t i = 0; i < names.size(); ++i) {
        std::vector<std::string> row{cut(names[i], 20)};
        for (size_t j = 0; j < names.size(); ++j) row.push_back(j < i ? "" : short_bytes(bytes[i][j]));
        table.add(row);
    }
    return "\nBytes within and between hosts, both directions\n" + table.text();
}

std::string waiting(const Run& run) {
    Waits waits;
    for (const Span& span : run.spans) waits.add(span.waits);
    const double all = process_seconds(run);
    if (waits.sum() == 0) return {};
    Table table("lrr", {"for", "time", "of all time"});
    const auto row = [&](const char* name, double seconds) { table.add({name, short_time(seconds), percent(seconds, all)}); };
    row("a message that was sent late", waits.late_sender);
    row("a receiver that was late", waits.late_receiver);
    row("others in a collective call", waits.collective);
    row("anything else", waits.other);
    return fmt::format("\nWaited, all processes together ({} of {})\n", short_time(waits.sum()), short_time(all)) +
           table.text();
}

std::string waiting_places(const Run& run, const ShowWish& wish) {
    std::vector<std::pair<WaitPlace, Waits>> sorted(run.waiting.begin(), run.waiting.end());
    if (sorted.empty()) return {};
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.sum() > b.second.sum(); });
    const double all = process_seconds(run);
    Table table("llrrrrr", {"site", "call", "late sender", "late receiver", "collective", "other", "of all time"});
    for (size_t i = 0; i < sorted.size() && i < wish.top; ++i) {
        const auto& [place, waits] = sorted[i];
        table.add({cut(place.site, 36), place.function, short_time(waits.late_sender), short_time(waits.late_receiver),
                   short_time(waits.collective), short_time(waits.other), percent(waits.sum(), all)});
    }
    std::string out = "\nWaits by call site, all processes together\n" + table.text();
    if (sorted.size() > wish.top) out += fmt::format("  … and {} more\n", sorted.size() - wish.top);
    return out;
}

std::string collectives(const Run& run, const ShowWish& wish) {
    std::vector<std::pair<Site, Calls>> sorted(run.collectives.begin(), run.collectives.end());
    if (sorted.empty()) return {};
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    const double all = process_seconds(run);
    Table table("llllrrrrr", {"site", "call", "communicator", "algorithm", "calls", "bytes", "time", "a call", "of all time"});
    for (size_t i = 0; i < sorted.size() && i < wish.top; ++i) {
        const auto& [site, calls] = sorted[i];
        table.add({cut(site.site, 36), site.kind + " " + site.size,
                   fmt::format("{} ({})", cut(site.communicator, 20), site.members),
                   site.algorithm + (site.tried ? " (tried)" : ""), short_number(calls.calls), short_bytes(calls.bytes),
                   short_time(calls.seconds), short_time(calls.calls > 0 ? calls.seconds / calls.calls : 0),
                   percent(calls.seconds, all)});
    }
    std::string out = "\nCollective calls, all processes together\n" + table.text();
    if (sorted.size() > wish.top) out += fmt::format("  … and {} more\n", sorted.size() - wish.top);
    return out;
}

std::string gain(const Run& run) {
    const WhatIf curves = what_if(run);
    if (curves.planned.back() == 0) return {};
    const uint32_t knee = curves.knee();
    std::set<uint32_t> rows{1, 2, 4, 8, 16, kMostDirect, knee};
    rows.erase(0);
    Table table("rrrrl", {"max_direct", "static", "on demand", "plan", ""});
    for (const uint32_t most : rows)
        table.add({std::to_string(most), percent(curves.fixed[most], 1), percent(curves.on_demand[most], 1),
                   percent(curves.planned[most], 1), most == knee ? "<- used by plans" : ""});
    return fmt::format("\nWhat if: messages on connections, by the number that a process may have ({} in this run)\n",
                       percent(curves.recorded, 1)) +
           table.text();
}

/// Returns the run with only the spans of one phase.
Run only(const Run& run, const std::string& phase) {
    Run out = run;
    std::erase_if(out.spans, [&](const Span& span) { return span.name != phase; });
    if (!out.spans.empty()) return out;
    std::set<std::string> names;
    for (const Span& span : run.spans) names.insert("'" + span.name + "'");
    throw Refusal(fmt::format("{} has no phase '{}'; it has {}", run.files[0], phase, fmt::join(names, ", ")));
}

}  // namespace

std::string show(const Run& all, const ShowWish& wish) {
    const bool one_phase = !wish.phase.empty();
    const Run chosen = one_phase ? only(all, wish.phase) : Run{};
    const Run& run = one_phase ? chosen : all;
    // Collectives and waits are recorded by call site, not by phase, so they are left out for one phase.
    const RankTable table = rank_table(run);
    return head(run) + "\n" + headline(run, table).text + "\n" + ranks_as_text(run, table, wish.top) + paths(run) +
           phases(run, wish) + top_pairs(run, wish) + between_hosts(run) + waiting(run) +
           (one_phase ? std::string() : waiting_places(run, wish) + collectives(run, wish)) + gain(run);
}

}  // namespace starling::analysis
