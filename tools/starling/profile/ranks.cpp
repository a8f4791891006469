#include "ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace starling::analysis {

namespace {

constexpr double kNotable = 0.02;  ///< lateness that matters, as a share of the run's time
constexpr size_t kMostRanges = 4;

/// One process's part of a phase's occurrences.
struct PartTime {
    uint32_t process;
    double compute, waited;
};

double lower_median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Calls `visit` with the parts of each span that are of one job.
template <class Visit>
void each_group(const Run& run, Visit visit) {
    const double mean = 1.0 / static_cast<double>(run.files.size());
    for (const Span& span : run.spans) {
        std::vector<PartTime> parts;
        for (const Part& part : span.parts) {
            const double seconds = part.seconds * mean, waited = std::min(part.waits.sum(), seconds);
            parts.push_back({part.process, seconds - waited, waited});
        }
        // Several files have a part of the same process each.
        std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.process < b.process; });
        std::vector<PartTime> job;
        for (size_t i = 0; i < parts.size(); ++i) {
            if (!job.empty() && job.back().process == parts[i].process) {
                job.back().compute += parts[i].compute;
                job.back().waited += parts[i].waited;
            } else {
                job.push_back(parts[i]);
            }
            if (i + 1 < parts.size() && &run.job_of(parts[i + 1].process) == &run.job_of(parts[i].process)) continue;
            visit(job);
            job.clear();
        }
    }
}

void add_lateness(const Run& run, std::vector<RankRow>& rows) {
    each_group(run, [&](const std::vector<PartTime>& job) {
        std::vector<double> times;
        for (const PartTime& part : job) times.push_back(part.compute);
        const double usual = lower_median(times);
        for (const PartTime& part : job) rows[part.process].late += std::max(0.0, part.compute - usual);
    });
}

/// Returns how long the processes outside of the group waited for it: no longer than it computed longer than they did.
double waited_for(const std::vector<PartTime>& job, const std::vector<bool>& member) {
    double slowest = 0, sum = 0;
    for (const PartTime& part : job)
        if (member[part.process]) slowest = std::max(slowest, part.compute);
    for (const PartTime& part : job)
        if (!member[part.process]) sum += std::min(part.waited, std::max(0.0, slowest - part.compute));
    return sum;
}

/// Fills in how long the others waited for the groups, which belong to one job each.
void add_waits_for(const Run& run, const std::vector<RankRow>& rows, std::vector<LateRanks>& group_of_job) {
    std::vector<bool> member(run.processes, false);
    for (const LateRanks& group : group_of_job)
        for (const uint32_t process : group.processes) member[process] = true;
    each_group(run, [&](const std::vector<PartTime>& parts) {
        LateRanks& group = group_of_job[static_cast<size_t>(&run.job_of(parts[0].process) - run.jobs.data())];
        if (!group.processes.empty()) group.waited += waited_for(parts, member);
    });
    for (size_t i = 0; i < run.jobs.size(); ++i) {
        LateRanks& group = group_of_job[i];
        if (group.processes.empty()) continue;
        // Ranks may wait in a later phase for a rank that was late in an earlier one.
        std::vector<PartTime> whole;
        for (uint32_t process = run.jobs[i].first; process < run.jobs[i].first + run.jobs[i].size; ++process) {
            whole.push_back({process, rows[process].compute, rows[process].waited});
            if (member[process]) continue;
            group.of_others += rows[process].seconds();
            ++group.others;
        }
        group.waited = std::max(group.waited, waited_for(whole, member));
    }
}

/// Returns the ranks of a job that are at least half as late as its latest one.
LateRanks late_ranks_of(const Job& job, const std::vector<RankRow>& rows) {
    LateRanks group;
    double latest = 0, seconds = 0;
    for (uint32_t process = job.first; process < job.first + job.size; ++process) {
        latest = std::max(latest, rows[process].late);
        seconds = std::max(seconds, rows[process].seconds());
    }
    if (latest <= kNotable * seconds) return group;
    for (uint32_t process = job.first; process < job.first + job.size; ++process) {
        if (rows[process].late < latest / 2) continue;
        group.processes.push_back(process);
        group.late += rows[process].late;
    }
    group.late /= static_cast<double>(group.processes.size());
    return group;
}

constexpr double RankRow::*kTimes[] = {&RankRow::compute, &RankRow::waited, &RankRow::late};
constexpr Amount RankRow::*kAmounts[] = {&RankRow::sent, &RankRow::received};

/// Sets each column of `out` to `combine(out, row)`.
template <class Combine>
void combine_columns(RankRow& out, const RankRow& row, Combine combine) {
    for (const auto column : kTimes) out.*column = combine(out.*column, row.*column);
    for (const auto column : kAmounts) {
        (out.*column).messages = combine((out.*column).messages, (row.*column).messages);
        (out.*column).bytes = combine((out.*column).bytes, (row.*column).bytes);
    }
}

void add_columns(RankTable& table) {
    table.least = table.most = table.rows[0];
    const double share = 1.0 / static_cast<double>(table.rows.size());
    for (const RankRow& row : table.rows) {
        combine_columns(table.least, row, [](double one, double other) { return std::min(one, other); });
        combine_columns(table.most, row, [](double one, double other) { return std::max(one, other); });
        combine_columns(table.mean, row, [&](double sum, double value) { return sum + value * share; });
        table.seconds += row.seconds();
        table.waited += row.waited;
    }
}

/// Fills in the rows except for their lateness.
void add_sums(const Run& run, std::vector<RankRow>& rows) {
    const double mean = 1.0 / static_cast<double>(run.files.size());
    for (uint32_t process = 0; process < rows.size(); ++process) rows[process].process = process;
    for (const Span& span : run.spans) {
        for (const Part& part : span.parts) {
            RankRow& row = rows[part.process];
            const double seconds = part.seconds * mean, waited = std::min(part.waits.sum(), seconds);
            row.compute += seconds - waited;
            row.waited += waited;
            row.waits.add(part.waits);
            for (uint32_t i = part.first; i < part.first + part.count; ++i) {
                const Sent& sent = span.sent[i];
                for (const Amount& amount : {sent.all, sent.in_memory}) {
                    row.sent += amount;
                    rows[sent.to].received += amount;
                }
            }
        }
    }
}

}  // namespace

RankTable rank_table(const Run& run) {
    RankTable table;
    table.rows.resize(run.processes);
    if (table.rows.empty()) return table;
    add_sums(run, table.rows);
    add_lateness(run, table.rows);
    add_columns(table);
    std::vector<LateRanks> group_of_job;
    for (const Job& job : run.jobs) group_of_job.push_back(late_ranks_of(job, table.rows));
    add_waits_for(run, table.rows, group_of_job);
    for (LateRanks& group : group_of_job)
        if (group.waited > table.late.waited) table.late = std::move(group);
    return table;
}

std::vector<size_t> notable_rows(const RankTable& table, size_t count) {
    std::vector<size_t> chosen(table.rows.size());
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    if (chosen.size() <= count) return chosen;
    const auto& late = table.late.processes;
    const auto is_late = [&](size_t row) { return std::binary_search(late.begin(), late.end(), table.rows[row].process); };
    std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) {
        if (is_late(a) != is_late(b)) return is_late(a);
        return table.rows[a].compute > table.rows[b].compute;
    });
    // A third of the table is for those that compute least.
    const size_t from_end = count / 3;
    chosen.erase(chosen.begin() + static_cast<ptrdiff_t>(count - from_end), chosen.end() - static_cast<ptrdiff_t>(from_end));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

std::string ranks_text(const Run& run, const std::vector<uint32_t>& processes) {
    std::vector<std::string> ranges;
    size_t left_out = 0;
    for (size_t i = 0; i < processes.size();) {
        size_t end = i + 1;
        while (end < processes.size() && processes[end] == processes[end - 1] + 1) ++end;
        if (end - i == 2) --end;
        if (ranges.size() == kMostRanges)
            left_out += end - i;
        else if (end - i == 1)
            ranges.push_back(run.name_of(processes[i]));
        else
            ranges.push_back(run.name_of(processes[i]) + "–" + run.name_of(processes[end - 1]));
        i = end;
    }
    if (left_out > 0) ranges.push_back(fmt::format("{} more", left_out));
    std::string text = processes.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranges.size(); ++i) text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
    return text;
}

}  // namespace starling::analysis
