#include "starling/why/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
#include "hang/judge.h"
#include "launch/common/text.h"
#include "starling/agents.h"
#include "starling/why/json.h"
#include "starling/why/look.h"
#include "starling/why/remote.h"

namespace starling {

namespace {

using hang::JobReport;
using hang::RankReport;
using hang::Verdict;

constexpr uint64_t kAnswerPatienceNs = 15'000'000'000, kPatienceWithStacksNs = 60'000'000'000;  ///< maximum wait for other hosts

/// Sorts the jobs' ranks and judges each job.
std::vector<Verdict> judge_all(std::vector<JobReport>& jobs) {
    std::vector<Verdict> verdicts;
    for (JobReport& job : jobs) {
        std::sort(job.ranks.begin(), job.ranks.end(),
                  [](const RankReport& a, const RankReport& b) { return a.process < b.process; });
        verdicts.push_back(hang::judge(job.ranks, job.id));
    }
    return verdicts;
}

void print_text(const JobReport& job, const std::vector<std::string>& found) {
    fmt::print("job {:016x}  {}  {} of {} ranks seen\n", job.id, job.command, job.ranks.size(), job.size);
    for (const std::string& line : found) fmt::print("  * {}\n", line);
    for (const hang::RankGroup& group : hang::groups(job.ranks, job.id)) fmt::print("  {}\n", group.text);
    if (!job.stacks.empty()) fmt::print("{}", job.stacks);
}

/// Returns the exit code for a report that has jobs.
int exit_code(const std::vector<Verdict>& verdicts) {
    constexpr int kStuck = 3;
    return std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& one) { return one.stuck; }) ? kStuck : 0;
}

/// Returns whether a process has shown no activity for this time.
bool is_quiet(const RankReport& rank, double seconds) {
    if (rank.doing == hang::Doing::waiting) {
        return rank.report && !rank.report->waits.empty() &&
               std::all_of(rank.report->waits.begin(), rank.report->waits.end(),
                           [&](const hang::ThreadWait& wait) { return wait.seconds >= seconds; });
    }
    if (rank.doing != hang::Doing::computing && rank.doing != hang::Doing::testing) return true;
    return (rank.since_wait >= 0 ? rank.since_wait : rank.since_start) >= seconds;
}

/// Returns whether no process has made progress, and at least one waits.
bool all_quiet(const std::vector<JobReport>& jobs, double seconds) {
    bool anyone_waits = false;
    for (const JobReport& job : jobs) {
        for (const RankReport& rank : job.ranks) {
            if (!is_quiet(rank, seconds)) return false;
            anyone_waits |= rank.doing == hang::Doing::waiting || rank.doing == hang::Doing::testing;
        }
    }
    return anyone_waits;
}

/// Adds the reports of the jobs' other hosts. Returns a text that lists the hosts that failed.
std::string ask_other_hosts(const WhyOptions& options, std::vector<JobReport>& jobs) {
    std::vector<std::string> words{"why", "--raw", "--here", "--interval", fmt::format("{:g}", options.interval)};
    if (options.stacks) words.push_back("--stacks");
    if (options.all_frames) words.push_back("--all-frames");
    if (options.all_users) words.push_back("--all-users");
    if (options.launcher == 0 && !options.job.empty()) words.push_back(launch::shell_word(options.job));
    if (options.launcher != 0 && jobs.size() == 1) words.push_back(fmt::format("{:016x}", jobs[0].id));
    Agents agents(std::move(words));
    for (const std::string& host : options.hosts) agents.watch(host);
    for (const JobReport& job : jobs)
        for (const std::string& host : job.other_hosts) agents.watch(host);
    std::vector<JobReport> elsewhere;
    const uint64_t give_up = now_ns() + (options.stacks ? kPatienceWithStacksNs : kAnswerPatienceNs);
    do {
        agents.read([&](const std::string&, const std::string& line) { return hang::from_line(line, elsewhere); });
        if (!agents.settled()) agents.wait(50);
    } while (!agents.settled() && now_ns() < give_up);
    const auto known = [&](const JobReport& job) {
        return std::any_of(jobs.begin(), jobs.end(), [&](const JobReport& here) { return here.id == job.id; });
    };
    if (options.launcher != 0) std::erase_if(elsewhere, [&](const JobReport& job) { return !known(job); });
    hang::merge(jobs, std::move(elsewhere));
    return agents.trouble(false) + (agents.settled() ? "" : "; not all hosts have answered in time");
}

}  // namespace

int run_why(const WhyOptions& options) {
    read_config(false);
    if (options.all_users && options.stacks) {
        fmt::print(stderr, "starling: stacks are only available for your own processes: leave out --stacks or --all-users\n");
        return 2;
    }
    std::vector<JobReport> jobs = hang::look(options.job, options.launcher, options.all_users, options.interval);
    if (options.quiet > 0 && !std::all_of(jobs.begin(), jobs.end(), [&](const JobReport& job) {
            return std::all_of(job.ranks.begin(), job.ranks.end(),
                               [&](const RankReport& rank) { return is_quiet(rank, options.quiet); });
        }))
        return 0;
    if (options.stacks)
        for (JobReport& job : jobs) hang::add_stacks(job, options.all_frames);
    if (options.raw) {
        fmt::print("{}\n", hang::to_line(jobs));
        return 0;
    }
    const std::string trouble = options.here ? std::string() : ask_other_hosts(options, jobs);
    std::erase_if(jobs, [](const JobReport& job) { return job.ranks.empty(); });
    if (options.quiet > 0 && !all_quiet(jobs, options.quiet)) return 0;
    const std::vector<Verdict> verdicts = judge_all(jobs);
    if (options.ended_awaited &&
        std::none_of(verdicts.begin(), verdicts.end(), [](const Verdict& one) { return one.ended_awaited; }))
        return 0;
    if (options.json)
        fmt::print("{}\n", hang::to_json(jobs, verdicts));
    else
        for (size_t i = 0; i < jobs.size(); ++i) print_text(jobs[i], verdicts[i].findings);
    // Print which hosts are missing in the report.
    if (!trouble.empty()) fmt::print(options.json ? stderr : stdout, "  not seen: {}\n", trouble);
    if (!jobs.empty()) return exit_code(verdicts);
    fmt::print(stderr, "starling: no job of yours runs here{}\n",
               options.job.empty() ? "" : " that is or contains " + options.job);
    return 1;
}

std::vector<std::string> explain_rank(const WhyOptions& options, uint32_t rank) {
    std::vector<JobReport> jobs = hang::look(options.job, 0, options.all_users, options.interval);
    const std::string trouble = options.here ? std::string() : ask_other_hosts(options, jobs);
    std::vector<std::string> lines;
    const std::vector<Verdict> verdicts = judge_all(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
        const JobReport& job = jobs[i];
        const hang::CollectiveCalls collectives(job.ranks);
        for (const RankReport& report : job.ranks)
            if (report.process.rank == rank) lines.push_back(hang::sentence(report, job.id, &collectives));
        lines.emplace_back();
        for (const std::string& line : verdicts[i].findings) lines.push_back("* " + line);
        for (const hang::RankGroup& group : hang::groups(job.ranks, job.id)) lines.push_back(group.text);
    }
    if (jobs.empty()) lines.emplace_back("The job has ended.");
    if (!trouble.empty()) lines.push_back("not seen: " + trouble);
    return lines;
}

}  // namespace starling
