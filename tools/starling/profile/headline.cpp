#include "headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "show.h"

namespace starling::analysis {

namespace {

/// Share of the time that a cause must explain to be worth a headline.
constexpr double kLeastShare = 0.05;
/// Late ranks are named up to this share of a job's ranks; more are uneven work.
constexpr double kFewRanks = 0.25;

using Found = std::optional<Diagnosis>;
/// A rule for a cause, such as a late rank.
using CauseRule = Found (*)(const Run& run, const RankTable& table);
/// A rule for waits whose cause is not known. `unexplained` is the share of the waits that the rules for causes do not explain.
using SymptomRule = Found (*)(const Run& run, const RankTable& table, double unexplained);

/// Returns ", most of it in MPI_Recv at file.c:12 (work)": the place with the longest waits of the given causes; empty without a place.
template <class Part>
std::string where_most(const Run& run, Part part) {
    const WaitPlace* most = nullptr;
    double longest = 0;
    for (const auto& [place, waits] : run.waiting) {
        if (part(waits) <= longest || place.site == "?") continue;
        longest = part(waits);
        most = &place;
    }
    return most ? fmt::format(", most of it in {} at {}", most->function, most->site) : std::string();
}

/// The processes of one host, with the cores that they may use.
struct HostLoad {
    std::set<uint32_t> cpus;
    uint32_t ranks = 0;
    double useful = 0;   ///< processor time without polling, s
    double longest = 0;  ///< that of the process with the most; no longer than its time in phases
    double waited = 0;   ///< time in waits, and for a core
};

std::map<std::string, HostLoad> loads_of(const Run& run, const RankTable& table) {
    std::map<std::string, HostLoad> loads;
    for (const RankRow& row : table.rows) {
        if (row.process >= run.core_use.size() || !run.core_use[row.process].known) continue;
        const CoreUse& use = run.core_use[row.process];
        HostLoad& load = loads[run.host_of(row.process)];
        const double useful = use.cpu - use.polled;
        load.cpus.insert(use.cpus.begin(), use.cpus.end());
        ++load.ranks;
        load.useful += useful;
        load.longest = std::max(load.longest, std::min(useful, row.seconds()));
        load.waited += std::min(row.seconds(), row.waited + use.core_wait);
    }
    return loads;
}

// With C cores a run can't be shorter than the processor time of all ranks divided by C, and with a core per rank not shorter than that of
// the rank with the most. The difference of the two bounds is the time that each rank loses for want of cores.
Found shared_cores(const Run& run, const RankTable& table) {
    double lost = 0, most_crowded = 0;
    std::string which;
    for (const auto& [host, load] : loads_of(run, table)) {
        const auto cores = static_cast<double>(load.cpus.size());
        if (cores == 0 || load.ranks <= cores) continue;
        lost += std::min(load.waited, std::max(0.0, load.useful / cores - load.longest) * load.ranks);
        if (load.ranks / cores <= most_crowded) continue;
        most_crowded = load.ranks / cores;
        which = fmt::format("{} ranks share {} {} of {}", load.ranks, load.cpus.size(),
                            load.cpus.size() == 1 ? "core" : "cores", host);
    }
    if (which.empty()) return {};
    return Diagnosis{
        Finding::shared_cores, lost,
        fmt::format("{}: waiting for a core takes {} of the time. Start as many ranks as there are cores, or use more "
                    "hosts.",
                    which, percent(lost, table.seconds))};
}

// A rank without a core delays the ranks that wait for it about as long again.
Found other_programs(const Run& run, const RankTable& table) {
    double without_core = 0;
    for (const auto& [host, load] : loads_of(run, table))
        if (load.ranks > load.cpus.size()) return {};
    for (const CoreUse& use : run.core_use) without_core += use.core_wait;
    const double lost = std::min(table.seconds, without_core + std::min(without_core, table.waited));
    return Diagnosis{
        Finding::other_programs, lost,
        fmt::format("Other programs use the ranks' cores: ready ranks waited {} for a core, {} of their time. Repeat the "
                    "run on idle hosts.",
                    short_time(without_core), percent(without_core, table.seconds))};
}

bool are_few(const RankTable& table) {
    const double late = static_cast<double>(table.late.processes.size());
    return late == 1 || late <= kFewRanks * (late + table.late.others);
}

Found late_ranks(const Run& run, const RankTable& table) {
    const LateRanks& late = table.late;
    if (late.processes.empty() || !are_few(table)) return {};
    std::string who = ranks_text(run, late.processes);
    who[0] = 'R';
    const bool one = late.processes.size() == 1;
    return Diagnosis{
        Finding::late_ranks, late.waited,
        fmt::format("{} {} late: the others wait {} of their time for {}{}. Compare what {} {} outside of MPI with the "
                    "other ranks.",
                    who, one ? "is" : "are", percent(late.waited, late.of_others), one ? "it" : "them",
                    where_most(run, [](const Waits& waits) { return waits.sum(); }), one ? "it" : "they", one ? "does" : "do")};
}

Found uneven_work(const Run& run, const RankTable& table) {
    const LateRanks& late = table.late;
    if (late.processes.empty() || are_few(table)) return {};
    return Diagnosis{Finding::uneven_work, late.waited,
                     fmt::format("The work is uneven: {} compute {} longer than the others, which wait {} of their time for "
                                 "them{}. Distribute the work evenly.",
                                 ranks_text(run, late.processes), short_time(late.late), percent(late.waited, late.of_others),
                                 where_most(run, [](const Waits& waits) { return waits.sum(); }))};
}

/// Returns the sum over all processes of the waits of one kind.
double sum_of(const RankTable& table, double Waits::*kind) {
    double sum = 0;
    for (const RankRow& row : table.rows) sum += row.waits.*kind;
    return sum;
}

const char* although_nobody(const RankTable& table) { return table.late.processes.empty() ? " although no rank is late" : ""; }

Found late_senders(const Run& run, const RankTable& table, double unexplained) {
    const double rest = unexplained * sum_of(table, &Waits::late_sender);
    return Diagnosis{
        Finding::late_senders, rest,
        fmt::format("Receives wait for messages {} of the time{}{}. Send earlier, or compute between MPI_Irecv and MPI_Wait.",
                    percent(rest, table.seconds), although_nobody(table),
                    where_most(run, [](const Waits& waits) { return waits.late_sender; }))};
}

Found late_receivers(const Run& run, const RankTable& table, double unexplained) {
    const double rest = unexplained * sum_of(table, &Waits::late_receiver);
    return Diagnosis{
        Finding::late_receivers, rest,
        fmt::format("Sends wait for their receivers {} of the time{}. Post the receives earlier (MPI_Irecv), or send by "
                    "MPI_Isend.",
                    percent(rest, table.seconds), where_most(run, [](const Waits& waits) { return waits.late_receiver; }))};
}

Found many_collectives(const Run& run, const RankTable& table, double unexplained) {
    double seconds = 0;
    const std::pair<const Site, Calls>* most = nullptr;
    for (const auto& one : run.collectives) {
        seconds += one.second.seconds;
        if (!most || one.second.seconds > most->second.seconds) most = &one;
    }
    if (!most) return {};
    const auto& [site, calls] = *most;
    const double rest = unexplained * std::min(seconds, table.seconds);
    return Diagnosis{
        Finding::many_collectives, rest,
        fmt::format(
            "Collective calls take {} of the time{}, most of it {} at {} ({} calls of {} each). Combine calls, or overlap "
            "them with computation (MPI_I{}).",
            percent(rest, table.seconds), although_nobody(table), site.kind, site.site,
            short_number(calls.calls / std::max(1u, site.members)), short_time(calls.seconds / std::max(1.0, calls.calls)),
            site.kind)};
}

constexpr CauseRule kCauses[] = {shared_cores, other_programs, late_ranks, uneven_work};
constexpr SymptomRule kSymptoms[] = {late_senders, late_receivers, many_collectives};

Diagnosis computation(const Run& run, const RankTable& table) {
    if (run.processes == 1) return {Finding::computation, 0, "One process ran alone: it waited for no other."};
    return {Finding::computation, 0,
            fmt::format("The ranks compute {} of the time: to be faster, the computation must become faster.",
                        percent(table.seconds - table.waited, table.seconds))};
}

}  // namespace

std::vector<Diagnosis> diagnose(const Run& run, const RankTable& table) {
    std::vector<Diagnosis> all;
    double explained = 0;
    const auto add = [&](Found found) {
        if (!found || found->seconds <= 0) return;
        explained += found->seconds;
        if (found->seconds >= kLeastShare * table.seconds) all.push_back(*std::move(found));
    };
    for (const CauseRule rule : kCauses) add(rule(run, table));
    const double unexplained = table.waited > explained ? 1 - explained / table.waited : 0;
    for (const SymptomRule rule : kSymptoms) add(rule(run, table, unexplained));
    std::stable_sort(all.begin(), all.end(), [](const Diagnosis& a, const Diagnosis& b) { return a.seconds > b.seconds; });
    all.push_back(computation(run, table));
    return all;
}

Diagnosis headline(const Run& run, const RankTable& table) { return diagnose(run, table).front(); }

}  // namespace starling::analysis
