#include "starling/why/look.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/counters.h"
#include "base/wait_report_page.h"
#include "hang/judge.h"
#include "launch/process/stack_traces.h"
#include "starling/process_stat.h"
#include "transport/shm/region.h"

namespace starling::hang {

namespace {

constexpr std::chrono::seconds kStackShare{40};

struct Look {
    ProcStat process;
    uint64_t at = 0;
    bool counted = false;
    uint64_t waiting = 0, last_waited = 0, since = 0;
    uint64_t told = 0;  ///< time at which the process wrote its wait report, ns
};

Look look_at(const job::SegmentView& job, uint32_t index) {
    Look look;
    look.at = now_ns();
    look.process = read_process(job.cell(index).pid.load(std::memory_order_relaxed));
    if (job.cell(index).state.load(std::memory_order_acquire) != job::RankState::initialized) return look;
    const Counters* page = top::counters_of(job, index);
    if (!page) return look;
    look.counted = true;
    look.waiting = page->waiting;
    look.last_waited = page->last_waited;
    look.since = page->since;
    look.told = __atomic_load_n(&shm::SegmentRegion(job.region(index)).account().written_at, __ATOMIC_RELAXED);
    return look;
}

Doing doing_of(job::RankState state, const Look& before, const Look& after) {
    switch (state) {
        case job::RankState::finalized:
            return Doing::finalized;
        case job::RankState::exited:
            return Doing::exited;
        case job::RankState::failed:
            return Doing::failed;
        case job::RankState::not_started:
            return Doing::not_started;
        case job::RankState::started:
        case job::RankState::initialized:
            break;
    }
    if (after.process.state == '\0' || after.process.state == 'Z' || after.process.state == 'X') return Doing::ended;
    if (std::strchr("Tt", after.process.state)) return Doing::stopped;
    if (state == job::RankState::started) return Doing::starting;
    if (after.waiting > 0) return Doing::waiting;
    // A loop of test calls rewrites its wait report without a change of last_waited; a wait changes both.
    const bool tests = before.counted && after.told > before.told && after.last_waited == before.last_waited;
    return tests ? Doing::testing : Doing::computing;
}

double seconds(uint64_t from, uint64_t to) { return from < to ? static_cast<double>(to - from) * 1e-9 : 0; }

/// Returns the raw wait report; empty if there is none or it is invalid.
std::string read_account(const job::SegmentView& job, uint32_t index, uint64_t now, RankReport& rank) {
    const WaitReportPage& page = shm::SegmentRegion(job.region(index)).account();
    WaitReportPage account;
    if (__atomic_load_n(&page.version, __ATOMIC_RELAXED) == 0) return {};
    if (copy_account(page, account)) rank.report = check(account, now);
    rank.garbled = !rank.report;
    return rank.report ? std::string(reinterpret_cast<const char*>(&account), sizeof account) : std::string();
}

RankReport report(const job::SegmentView& job, uint32_t index, const Look& before, const Look& after, std::string& account) {
    RankReport rank;
    rank.process = {job.id(), job.rank(index)};
    rank.host = job.my_host();
    const job::RankCell& cell = job.cell(index);
    rank.pid = cell.pid.load(std::memory_order_relaxed);
    rank.doing = doing_of(cell.state.load(std::memory_order_acquire), before, after);
    const auto ticks = static_cast<double>(after.process.ticks - std::min(before.process.ticks, after.process.ticks));
    if (after.at > before.at) rank.cores = ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds(before.at, after.at);
    if (!after.counted) return rank;
    if (after.last_waited) rank.since_wait = seconds(after.last_waited, after.at);
    rank.since_start = seconds(after.since, after.at);
    account = read_account(job, index, after.at, rank);
    return rank;
}

}  // namespace

std::vector<JobReport> look(const std::string& filter, int launcher, bool all_users, double interval) {
    top::Watch watch(filter, true, all_users);
    watch.find_jobs();
    std::map<const job::SegmentView*, std::vector<Look>> first;
    watch.each_job([&](int32_t owner, const job::SegmentView& job) {
        if (launcher != 0 && owner != launcher) return;
        std::vector<Look>& looks = first[&job];
        for (uint32_t i = 0; i < job.ranks(); ++i) looks.push_back(look_at(job, i));
    });
    timespec pause{static_cast<time_t>(interval),
                   static_cast<long>((interval - static_cast<double>(static_cast<time_t>(interval))) * 1e9)};
    if (!first.empty()) nanosleep(&pause, nullptr);
    std::vector<JobReport> reports;
    for (const auto& [job, looks] : first) {
        JobReport seen;
        seen.id = job->id();
        seen.command = job->command();
        seen.size = job->size();
        for (uint32_t i = 0; i < looks.size(); ++i) {
            const Look now = look_at(*job, i);
            seen.times.push_back(now.at);
            seen.ranks.push_back(report(*job, i, looks[i], now, seen.accounts.emplace_back()));
        }
        seen.other_hosts = job->other_hosts();
        reports.push_back(std::move(seen));
    }
    return reports;
}

void add_stacks(JobReport& job, bool all_frames) {
    std::vector<launch::StackSubject> subjects;
    for (const RankReport& rank : job.ranks)
        if (rank.doing < Doing::ended) subjects.push_back({rank.process, rank.pid, " on " + rank.host});
    launch::StackOptions options;
    options.all_frames = all_frames;
    options.share = kStackShare;
    options.taken = [&](size_t taken) {
        fmt::print(stderr, "starling: stacks of {} of {} processes\n", taken, subjects.size());
    };
    job.stacks = launch::take_stacks(subjects, job.id, options);
}

}  // namespace starling::hang
