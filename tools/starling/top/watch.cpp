#include "starling/top/watch.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/phase_name.h"
#include "base/wait_report_page.h"
#include "mpi.h"
#include "starling/process_stat.h"
#include "transport/shm/region.h"

namespace starling::top {

namespace {

const Counter* const kWaiting = find_counter("waiting");
const Counter* const kSleeping = find_counter("sleeping");

Doing doing_of(const job::SegmentView& job, uint32_t index) {
    switch (job.cell(index).state.load(std::memory_order_acquire)) {
        case job::RankState::started:
            return Doing::starting;
        case job::RankState::finalized:
            return Doing::finalized;
        case job::RankState::exited:
            return Doing::exited;
        case job::RankState::failed:
            return Doing::failed;
        case job::RankState::not_started:
            return Doing::not_started;
        case job::RankState::initialized:
            break;
    }
    const Counters* counters = counters_of(job, index);
    if (!counters) return Doing::computing;
    if (counter_value(*kSleeping, *counters) > 0) return Doing::asleep;
    return counter_value(*kWaiting, *counters) > 0 ? Doing::waiting : Doing::computing;
}

const char* name(job::JobState state) {
    switch (state) {
        case job::JobState::running:
            return "running";
        case job::JobState::ended:
            return "ended";
        case job::JobState::failed:
            return "failed";
    }
    return "?";
}

// Visits the entries of a directory whose names are numbers.
template <class F>
void each_number(const std::string& directory, F&& visit) {
    DIR* open = opendir(directory.c_str());
    if (!open) return;
    while (const dirent* entry = readdir(open))
        if (*entry->d_name >= '0' && *entry->d_name <= '9') visit(std::atoi(entry->d_name));
    closedir(open);
}

bool is_job_segment(const std::string& path) {
    char target[64];
    const ssize_t length = readlink(path.c_str(), target, sizeof target - 1);
    if (length <= 0) return false;
    target[length] = '\0';
    return !std::strncmp(target, "/memfd:starling-job", 19);
}

/// Returns the MPI function in which the process waits; empty if its wait report is old or there is none.
std::string call_of(const job::SegmentView& job, uint32_t index) {
    constexpr uint64_t kRecentNs = 500'000'000;
    const WaitReportPage& page = shm::SegmentRegion(job.region(index)).account();
    WaitReportPage account;
    if (__atomic_load_n(&page.version, __ATOMIC_RELAXED) == 0 || !copy_account(page, account) || account.waits == 0) return {};
    const uint64_t now = now_ns();
    if (account.written_at > now || now - account.written_at > kRecentNs) return {};
    const char* call = account.wait[0].call;
    return job::printable(call, strnlen(call, sizeof account.wait[0].call));
}

}  // namespace

const Counters* counters_of(const job::SegmentView& job, uint32_t index) {
    const job::RankState state = job.cell(index).state.load(std::memory_order_acquire);
    if (state == job::RankState::started || state == job::RankState::not_started) return nullptr;
    const Counters* page = shm::SegmentRegion(job.region(index)).counters();
    return __atomic_load_n(&page->layout, __ATOMIC_ACQUIRE) == counter_layout() ? page : nullptr;
}

const char* name(Doing doing) {
    constexpr const char* kNames[] = {"starting",  "computing", "in MPI", "asleep",
                                      "finalized", "exited",    "failed", "not started"};
    return kNames[static_cast<int>(doing)];
}

bool matches(const std::string& filter, job::JobId id, const std::string& command) {
    return filter.empty() || fmt::format("{:016x}", id).starts_with(filter) || command.find(filter) != std::string::npos;
}

void Watch::find_in(int32_t pid) {
    const std::string directory = fmt::format("/proc/{}/fd", pid);
    each_number(directory, [&](int fd) {
        const std::string path = fmt::format("{}/{}", directory, fd);
        struct stat status;
        if (!is_job_segment(path) || stat(path.c_str(), &status) != 0) return;
        const Key key{pid, status.st_ino};
        if (const auto known = jobs_.find(key); known != jobs_.end()) {
            known->second.here = true;
            return;
        }
        Job job;
        if (job::SegmentView::open(pid, fd, all_users_, job.sight) != MPI_SUCCESS) {
            ++unreadable_;
            return;
        }
        if ((job.sight.ranks() == 0 && !stubs_) || !matches(filter_, job.sight.id(), job.sight.command())) return;
        job.ranks.resize(job.sight.ranks());
        jobs_.emplace(key, std::move(job));
    });
}

void Watch::find_jobs() {
    unreadable_ = 0;
    for (auto& [key, job] : jobs_) job.here = false;
    each_number("/proc", [&](int pid) {
        // By default read only the memory of the user's own processes: other users, root included, could write false values.
        struct stat status;
        const bool wanted =
            all_users_ || (stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == geteuid());
        if (wanted && pid != getpid()) find_in(pid);
    });
    std::erase_if(jobs_, [](const auto& entry) { return !entry.second.here; });
}

void Watch::look() {
    for (auto& [key, job] : jobs_) {
        for (uint32_t i = 0; i < job.ranks.size(); ++i) {
            const Doing doing = doing_of(job.sight, i);
            ++job.ranks[i].looks;
            job.ranks[i].asleep += doing == Doing::asleep;
            job.ranks[i].waiting += doing == Doing::asleep || doing == Doing::waiting;
        }
    }
}

void Watch::view_rank(const Job& job, uint32_t index, Rank& rank, double seconds, RankView& view) const {
    view.rank = job.sight.rank(index);
    const job::RankCell& cell = job.sight.cell(index);
    view.pid = cell.pid.load(std::memory_order_relaxed);
    view.core = cell.cpu;
    view.doing = doing_of(job.sight, index);
    if (rank.looks > 0) {
        view.waiting = static_cast<double>(rank.waiting) / rank.looks;
        view.asleep = static_cast<double>(rank.asleep) / rank.looks;
    }
    rank.looks = rank.waiting = rank.asleep = 0;
    const ProcStat process = read_process(view.pid);
    if (rank.ticks > 0 && process.ticks >= rank.ticks && seconds > 0)
        view.cores = static_cast<double>(process.ticks - rank.ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds;
    rank.ticks = process.ticks;
    view.memory_kb = process.memory_kb;
    const Counters* counters = counters_of(job.sight, index);
    if (!counters) return;
    view.counted = true;
    if (view.doing == Doing::waiting || view.doing == Doing::asleep) view.call = call_of(job.sight, index);
    const std::string_view phase = phase_name_in(*counters);
    view.phase = job::printable(phase.data(), phase.size());
    size_t count = 0;
    const Counter* rows = counter_table(count);
    for (size_t i = 0; i < count; ++i) {
        view.values.push_back(counter_value(rows[i], *counters));
        const bool grows = rows[i].kind != CounterKind::level && !rank.before.empty() && seconds > 0;
        view.rates.push_back(grows ? static_cast<double>(view.values[i] - rank.before[i]) / seconds : 0);
    }
    rank.before = view.values;
}

std::vector<JobView> Watch::snapshot() {
    const uint64_t now = now_ns();
    const double seconds = last_snapshot_ ? static_cast<double>(now - last_snapshot_) * 1e-9 : 0;
    last_snapshot_ = now;
    std::vector<JobView> views;
    for (auto& [key, job] : jobs_) {
        JobView view;
        view.id = job.sight.id();
        view.command = job.sight.command();
        view.host = job.sight.my_host();
        view.state = name(job.sight.state());
        view.owner_pid = key.first;
        view.size = job.sight.size();
        view.hosts = job.sight.hosts();
        view.other_hosts = job.sight.other_hosts();
        view.ranks.resize(job.ranks.size());
        for (uint32_t i = 0; i < view.ranks.size(); ++i) {
            RankView& rank = view.ranks[i];
            rank.host = view.host;
            view_rank(job, i, job.ranks[i], seconds, rank);
            if (!rank.counted) continue;
            const Counters* const counters = counters_of(job.sight, i);
            const uint64_t since = counters ? counters->since : now;
            if (since < now) view.age = std::max(view.age, static_cast<double>(now - since) * 1e-9);
        }
        views.push_back(std::move(view));
    }
    std::sort(views.begin(), views.end(),
              [](const JobView& a, const JobView& b) { return a.age != b.age ? a.age > b.age : a.id < b.id; });
    return views;
}

size_t Watch::processes() const {
    size_t sum = 0;
    for (const auto& [key, job] : jobs_) sum += job.ranks.size();
    return sum;
}

}  // namespace starling::top
