#include "diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "show.h"
#include "table.h"

namespace starling::analysis {

namespace {

constexpr double kNoticeable = 0.002;  ///< minimum weight of a change that is shown, as a share of the whole

/// The values of a phase that are compared.
struct Sum {
    double occurrences = 0, seconds = 0;
    Amount all;
    double on_connection = 0;  ///< messages
    Waits waits;
    void add(const Span& span) {
        occurrences += span.occurrences();
        for (const Part& part : span.parts) seconds += part.seconds;
        all += span.all();
        on_connection += span.on_connection().messages;
        waits.add(span.waits);
    }
};

struct Whole {
    std::map<std::string, Sum> phases;
    Sum sum;
    explicit Whole(const Run& run) {
        for (const Span& span : run.spans) {
            phases[span.name].add(span);
            sum.add(span);
        }
    }
};

struct Change {
    double weight;  ///< weight of the change as a share of the run's total
    std::vector<std::string> row;
};

std::string relative(double before, double after) {
    if (before == 0) return "new";
    if (after == 0) return "gone";
    const double change = 100 * (after - before) / before;
    return std::abs(change) >= 1000 ? fmt::format("x {:.0f}", after / before) : fmt::format("{:+.0f} %", change);
}

/// Collects changes, each with its weight as a share of the run's total.
class Changes {
  public:
    template <class Text>
    void add(const std::string& where, const char* what, double before, double after, double whole, Text text) {
        const double weight = whole > 0 ? std::abs(after - before) / whole : 0;
        if (weight >= kNoticeable)
            all_.push_back(
                {weight, {cut(where, 40), what, text(before), text(after), relative(before, after), percent(weight, 1)}});
    }

    std::string text(uint32_t top) {
        std::stable_sort(all_.begin(), all_.end(), [](const Change& a, const Change& b) { return a.weight > b.weight; });
        if (all_.empty()) return "There is no significant difference.\n";
        Table table("llrrrr", {"where", "what", "before", "after", "", "of the whole"});
        for (size_t i = 0; i < all_.size() && i < top; ++i) table.add(std::move(all_[i].row));
        std::string out = table.text();
        if (all_.size() > top) out += fmt::format("  … and {} smaller changes\n", all_.size() - top);
        return out;
    }

  private:
    std::vector<Change> all_;
};

void compare(const std::string& name, const Sum& one, const Sum& other, const Sum& whole, Changes& out) {
    const std::string where = name.empty() ? "(before the first phase)" : name;
    out.add(where, "time, all processes", one.seconds, other.seconds, whole.seconds, short_time);
    out.add(where, "occurrences", one.occurrences, other.occurrences, whole.occurrences, short_number);
    out.add(where, "messages", one.all.messages, other.all.messages, whole.all.messages, short_number);
    out.add(where, "bytes", one.all.bytes, other.all.bytes, whole.all.bytes, short_bytes);
    out.add(where, "messages on connections", one.on_connection, other.on_connection, whole.all.messages, short_number);
    out.add(where, "messages on the base path", one.all.messages - one.on_connection, other.all.messages - other.on_connection,
            whole.all.messages, short_number);
    out.add(where, "waited for late senders", one.waits.late_sender, other.waits.late_sender, whole.seconds, short_time);
    out.add(where, "waited for late receivers", one.waits.late_receiver, other.waits.late_receiver, whole.seconds, short_time);
    out.add(where, "waited in collectives", one.waits.collective, other.waits.collective, whole.seconds, short_time);
    out.add(where, "waited otherwise", one.waits.other, other.waits.other, whole.seconds, short_time);
}

/// Returns whether the runs have no call site of a collective in common, although both have some: their programs are different.
bool other_sites(const Run& before, const Run& after) {
    std::set<std::string> sites;
    for (const auto& [site, calls] : before.collectives) sites.insert(site.site);
    return !sites.empty() && !after.collectives.empty() &&
           std::none_of(after.collectives.begin(), after.collectives.end(),
                        [&](const auto& each) { return sites.contains(each.first.site); });
}

/// Compares collectives by kind, size and algorithm, and by call site if `by_site`.
void compare_collectives(const Run& before, const Run& after, bool by_site, double seconds, Changes& out) {
    std::map<std::string, std::pair<double, double>> sums;
    const auto name = [&](const Site& site) {
        return fmt::format("{}{} {}: {}", by_site ? site.site + " " : "", site.kind, site.size, site.algorithm);
    };
    for (const auto& [site, calls] : before.collectives) sums[name(site)].first += calls.seconds;
    for (const auto& [site, calls] : after.collectives) sums[name(site)].second += calls.seconds;
    for (const auto& [where, times] : sums) out.add(where, "time in the call", times.first, times.second, seconds, short_time);
}

/// Compares the time and the bytes of each file.
void compare_files(const Run& before, const Run& after, double seconds, Changes& out) {
    std::map<std::string, std::pair<Calls, Calls>> files;
    Calls whole;
    for (const auto& [place, calls] : before.file_calls) files[place.file].first.add(calls), whole.add(calls);
    for (const auto& [place, calls] : after.file_calls) files[place.file].second.add(calls);
    if (whole.bytes == 0)
        for (const auto& [place, calls] : after.file_calls) whole.add(calls);
    for (const auto& [file, calls] : files) {
        out.add(file, "time in calls for the file", calls.first.seconds, calls.second.seconds, seconds, short_time);
        out.add(file, "bytes read and written", calls.first.bytes, calls.second.bytes, whole.bytes, short_bytes);
    }
}

/// Returns the first lines: what is compared, and in which respect the runs differ from the start.
std::string what_differs(const Run& before, const Run& after, bool by_site) {
    const bool one_name = before.application == after.application;
    std::string out = fmt::format("{}: {} -> {}{}\n", before.application, before.files[0],
                                  one_name ? std::string() : after.application + ": ", after.files[0]);
    if (!by_site)
        out += "  note: two programs or builds: call sites differ, so collective calls are compared by operation\n";
    else if (!one_name)
        out += "  note: the programs have different names\n";
    if (before.command != after.command)
        out += fmt::format("  note: the commands differ: {} -> {}\n", fmt::join(before.command, " "),
                           fmt::join(after.command, " "));
    if (before.starling != after.starling) out += fmt::format("  note: Starling {} -> {}\n", before.starling, after.starling);
    if (before.processes != after.processes)
        out += fmt::format("  {} processes -> {}: sums are of all of them\n", before.processes, after.processes);
    return out;
}

}  // namespace

std::string diff(const Run& before, const Run& after, uint32_t top) {
    const bool by_site = !other_sites(before, after);
    const Whole one(before), other(after);
    std::string out = what_differs(before, after, by_site);
    out += fmt::format("  messages on connections: {} -> {}\n  waited: {} of the time -> {}\n\n",
                       percent(one.sum.on_connection, one.sum.all.messages),
                       percent(other.sum.on_connection, other.sum.all.messages), percent(one.sum.waits.sum(), one.sum.seconds),
                       percent(other.sum.waits.sum(), other.sum.seconds));
    Changes changes;
    std::map<std::string, Sum> names = one.phases;
    names.insert(other.phases.begin(), other.phases.end());
    const auto of = [](const Whole& whole, const std::string& name) {
        const auto found = whole.phases.find(name);
        return found == whole.phases.end() ? Sum{} : found->second;
    };
    // Weights are relative to the earlier run, or to the later one where the earlier run has nothing.
    Sum whole = one.sum;
    if (whole.seconds == 0) whole.seconds = other.sum.seconds;
    if (whole.all.messages == 0) whole.all = other.sum.all;
    for (const auto& [name, sum] : names) compare(name, of(one, name), of(other, name), whole, changes);
    compare_collectives(before, after, by_site, whole.seconds, changes);
    compare_files(before, after, whole.seconds, changes);
    return without_controls(out + changes.text(top));
}

}  // namespace starling::analysis
