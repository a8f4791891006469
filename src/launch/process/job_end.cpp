// The end of jobs: reaps processes, reports failures and propagates them, kills remaining processes.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/signal_name.h"
#include "job/doorbell.h"
#include "job/environment.h"
#include "job/life_lock.h"
#include "launch/common/hosts.h"
#include "launch/common/process_start.h"
#include "launch/process/control_server.h"
#include "launch/process/input.h"
#include "launch/process/launcher.h"
#include "launch/process/output.h"

namespace starling::launch {

namespace {

using job::JobState;
using job::RankState;

constexpr std::chrono::milliseconds kMercy{250};  // grace period between SIGTERM and SIGKILL

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// Returns a child that has ended and is not reaped yet; 0 if there is none.
pid_t ended_child() {
    siginfo_t about{};
    int error;
    while ((error = waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT)) != 0 && errno == EINTR) {}
    return error == 0 ? about.si_pid : 0;
}

}  // namespace

void Launcher::reap() {
    // Several children may have ended since the last call, and waitpid does not return them in order. Handle first those that were killed
    // or aborted; others may have ended because of them.
    std::vector<Exit> exits;
    int status = 0;
    while (pid_t pid = ended_child()) {
        const auto found = running_.find(pid);
        // Neighbors copy to and from the process with this pid. Clear it before the kernel can reuse the pid.
        if (found != running_.end()) {
            int32_t number = pid;
            found->second.job->segment.cell(found->second.rank).pid.compare_exchange_strong(number, 0);
        }
        if (reap_process(pid, status, WNOHANG) != pid) break;
        if (pid == guard_.pid()) {
            detail("the guard process was killed; starting another");
            if (!guard_.restart()) print("%s", std::string(failure_text()).c_str());
            continue;
        }
        if (found == running_.end()) {
            if (const auto helper = helpers_.find(pid); helper != helpers_.end()) {
                const auto done = std::move(helper->second);
                helpers_.erase(helper);
                done();
            } else if (on_other_child) {
                on_other_child(pid, status);
            }
            continue;
        }
        exits.push_back({found->second, status});
        running_.erase(found);
    }
    if (!exits.empty() && control_) control_->handle_pending_frames();
    const auto weight = [](const Exit& exit) {
        const job::RankCell& cell = exit.who.job->segment.cell(exit.who.rank);
        if (WIFSIGNALED(exit.status)) return 0;
        return cell.aborted.load(std::memory_order_acquire) != 0 ? 1 : 2;
    };
    std::stable_sort(exits.begin(), exits.end(), [&](const Exit& a, const Exit& b) { return weight(a) < weight(b); });
    for (const Exit& exit : exits) note_exit(exit);
}

bool Launcher::counts_as_failure(const LocalJob& job, uint32_t rank, int status) const {
    const job::RankCell& cell = job.segment.cell(rank);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0 || cell.aborted.load(std::memory_order_acquire) != 0 ||
           cell.state.load(std::memory_order_acquire) == RankState::initialized;
}

void Launcher::note_exit(const Exit& exit) {
    LocalJob& job = *exit.who.job;
    const uint32_t rank = exit.who.rank;
    LocalRank& record = job.at(rank);
    record.running = false;
    --job.running;
    release_processors(record);
    job::RankCell& cell = job.segment.cell(rank);
    const bool failed = counts_as_failure(job, rank, exit.status);
    const bool first = failed && !job.failing;
    const RankState before = cell.state.load(std::memory_order_acquire);
    cell.exit_status.store(exit.status, std::memory_order_relaxed);
    cell.state.store(failed ? RankState::failed : RankState::exited, std::memory_order_release);
    job.segment.place(job.segment.local_index(rank)).store(job::CpuLocation::kNowhere);
    if (first) note_failure(job, rank, exit.status, before);
    if (!failed && before == RankState::started) note_absent(job, rank);
    if (job.number == 0 && input_ && rank == input_rank_) input_->stop();
    if (const auto pipe = input_pipes_.find(job.id()); pipe != input_pipes_.end()) pipe->second->close_pipe(rank);
    forget_unless_left_over(job, record);
    if (job.running == 0) finish(job);
}

// The kernel may reuse the pid of a reaped process, unless its process group still has members. So the pid is forgotten, because it might
// soon mean a foreign process. Exception: processes that a dead wrapper leaves behind in a failing job keep it, and are killed with the
// job.
void Launcher::forget_unless_left_over(LocalJob& job, LocalRank& rank) {
    if (job.failing && kill(-rank.pid, 0) == 0) return;
    release_guard(rank);
    rank.pid = -1;
}

void Launcher::on_external_exit(LocalJob& job, int pid_fd) {
    loop_.forget(pid_fd);
    close(pid_fd);
    // Only the parent can read the exit status. The rank's cell shows whether it ended properly: it must not be `initialized` any more.
    external_exit(job, 0, job.segment.cell(0).state.load(std::memory_order_acquire) == RankState::initialized);
    release(job);
}

void Launcher::external_exit(LocalJob& job, uint32_t rank, bool failed) {
    job.segment.cell(rank).state.store(failed ? RankState::failed : RankState::exited, std::memory_order_release);
    if (failed) fail_external(job, static_cast<int>(rank));
}

void Launcher::fail_external(LocalJob& job, int failed_rank) {
    if (job.failing) return;
    end_ranks(job, failed_rank);
    // The job's own manager decides whether the job continues, and reports the failure.
    RankFailure failure;
    failure.rank = static_cast<uint32_t>(failed_rank);
    failure.aborted = true;
    superior_->failed(job, failure);
}

void Launcher::release(LocalJob& job) {
    job.running = 0;
    finish(job);
}

std::string Launcher::name_of(const LocalJob& job, uint32_t rank) const {
    const auto app = static_cast<size_t>(job.segment.cell(rank).appnum);
    std::string text = "rank " + std::to_string(rank);
    if (app < job.programs.size()) text += " (" + job.programs[app] + ")";
    if (job.number > 0) text += " of spawned job " + std::to_string(job.number);
    return text;
}

std::string Launcher::what_happened(const LocalJob& job, uint32_t rank, int status) const {
    const job::RankCell& cell = job.segment.cell(rank);
    char text[768];
    const int length = std::snprintf(text, sizeof text, "%s, process %d on %s, ", name_of(job, rank).c_str(), job.at(rank).pid,
                                     host_name().c_str());
    const size_t used = std::min(static_cast<size_t>(length), sizeof text - 1);
    char* rest = text + used;
    const size_t room = sizeof text - used;
    if (cell.aborted.load(std::memory_order_acquire) != 0) {
        const int code = cell.abort_code.load(std::memory_order_relaxed);
        if (cell.aborted.load() == job::kEndedForAll)
            std::snprintf(rest, room, "called shmem_global_exit with code %d", code);
        else if (cell.aborted.load() == job::kEndedByError)
            std::snprintf(rest, room, "ended because of an MPI or OpenSHMEM error, with code %d", code);
        else
            std::snprintf(rest, room, "called MPI_Abort with code %d", code);
    } else if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const char* abbreviation = signal_name(signal);
        std::snprintf(rest, room, "was killed by signal %d (SIG%s, %s)%s", signal, abbreviation ? abbreviation : "?",
                      strsignal(signal), WCOREDUMP(status) ? ", core dumped" : "");
    } else if (WEXITSTATUS(status) != 0) {
        std::snprintf(rest, room, "exited with code %d", WEXITSTATUS(status));
    } else {
        std::snprintf(rest, room, "exited without calling MPI_Finalize or shmem_finalize");
    }
    return text;
}

void Launcher::note_failure(LocalJob& job, uint32_t rank, int status, RankState before) {
    const job::RankCell& cell = job.segment.cell(rank);
    const job::JobHeader& header = job.segment.header();
    // Wake the ranks that wait for this one before anything else. There is no need to wait for the root, whose decision is known.
    const bool goes_on = header.recovers && cell.aborted.load(std::memory_order_acquire) == 0;
    if (goes_on) {
        mark_and_wake(job, {&rank, 1});
        // With several hosts, ring the other ranks only on the root's order: waking them now would take the cores from the ranks that wait
        // for the dead one.
        if (header.hosts > 1) ring_ranks(job);
    }
    if (output_) output_->read_now();  // pass on the rank's last output before the message about its failure
    RankFailure failure{rank,
                        status,
                        exit_code_of(status),
                        cell.aborted.load(std::memory_order_acquire) != 0,
                        what_happened(job, rank, status),
                        WIFEXITED(status) && before == RankState::finalized,
                        job.running,
                        before == RankState::started};
    if (failure.aborted) failure.exit_code = cell.abort_code.load(std::memory_order_relaxed) & 0xff;
    const bool well = failure.aborted && failure.exit_code == 0 && cell.aborted.load() == job::kEndedForAll;
    if (failure.exit_code == 0 && !well) failure.exit_code = 1;
    const bool left_to_root = (job.asked_to_end || failure.finalized) && !failure.aborted && !goes_on;
    // Only a launcher with all ranks of the job knows how many still run.
    if (header.local_ranks == header.size && job.running > 0 && !left_to_root)
        failure.sentence += "; " + fate_of_others(job.running, goes_on);
    if (well) failure.sentence.clear();
    if (goes_on) {
        kill(-job.at(rank).pid, SIGKILL);  // also kill the processes that the rank has started
    } else if (!left_to_root) {
        end_ranks(job, static_cast<int>(rank));
    }
    superior_->failed(job, failure);
}

std::string fate_of_others(uint32_t running, bool goes_on) {
    if (running == 1) return goes_on ? "the other process goes on" : "ending the other process";
    return (goes_on ? "the other " : "ending the other ") + std::to_string(running) + (goes_on ? " go on" : "");
}

void Launcher::mark_and_wake(LocalJob& job, std::span<const uint32_t> ranks) {
    // Otherwise a thread that finds a rank marked could ring the others before the count that they look at is higher.
    const MutexGuard guard(marks_);
    uint32_t news = 0;
    for (const uint32_t rank : ranks) {
        // The launcher has marked a rank of this host already when it reaped the process.
        if (job.has(rank) && std::exchange(job.at(rank).marked_failed, true)) continue;
        ++news;
        const job::PortWord word = job::PortWord::of(job.segment.port(rank).load(std::memory_order_relaxed));
        job.segment.port(rank).store(job::PortWord{word.port, job::PortWord::failed}.word(), std::memory_order_release);
    }
    if (news == 0) return;
    std::atomic<uint32_t>& failures = job.segment.header().failures;
    failures.fetch_add(news, std::memory_order_release);
    syscall(SYS_futex, &failures, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);  // wakes most waiting ranks at once
}

void Launcher::start_death_watches(LocalJob& job) {
    if (!job.segment.header().recovers || job.ranks.size() < 2) return;
    std::vector<DeathWatch::WatchedRank> group;
    for (size_t i = 0; i < job.ranks.size(); ++i) {
        const uint32_t rank = job.rank_of(i);
        group.push_back({rank, job.ranks[i].pid, &job::life_word(job.segment, rank)});
        if (group.size() < DeathWatch::kMostRanks && i + 1 < job.ranks.size()) continue;
        job.death_watches.push_back(std::make_unique<DeathWatch>(job.segment.header().lives, group,
                                                                 [this, &job](uint32_t ended) { on_early_death(job, ended); }));
        group.clear();
    }
}

// Runs on the thread of a death watch, so it marks only what is a failure whatever the exit status will be. reap() does everything else.
void Launcher::on_early_death(LocalJob& job, uint32_t rank) {
    const job::RankCell& cell = job.segment.cell(rank);
    if (job.segment.header().state.load(std::memory_order_acquire) != JobState::running) return;
    if (cell.state.load(std::memory_order_acquire) != RankState::initialized) return;
    if (cell.aborted.load(std::memory_order_acquire) == 0) mark_and_wake(job, {&rank, 1});
}

void Launcher::mark_failed(LocalJob& job, const std::vector<uint32_t>& ranks) {
    mark_and_wake(job, ranks);
    ring_everyone(&job);
}

void Launcher::end_ranks(LocalJob& job, int failed_rank) {
    job.failing = true;
    job::JobHeader& header = job.segment.header();
    header.failed_rank.store(failed_rank, std::memory_order_relaxed);
    header.state.store(JobState::failed, std::memory_order_release);
    ring_everyone(&job);
    for (const LocalRank& rank : job.ranks) {
        if (rank.pid <= 0) continue;
        kill(-rank.pid, SIGTERM);
        kill(-rank.pid, SIGCONT);  // a stopped process would not handle SIGTERM
    }
    if (job.external || job.ranks.empty()) return;
    job.deadline = loop_.after(kMercy, [this, &job] {
        job.deadline = 0;
        kill_rest(job);
        if (job.running == 0) finish(job);
    });
}

void Launcher::release_guard(LocalRank& rank) {
    if (rank.guard_slot) guard_.release_slot(rank.guard_slot);
    rank.guard_slot = nullptr;
}

void Launcher::kill_rest(LocalJob& job) {
    for (const LocalRank& rank : job.ranks) {
        if (rank.pid > 0) kill(-rank.pid, SIGKILL);
    }
    // Processes that left their process group still have the job's address in their environment.
    if (!job.external) kill_marked(std::string(job::kJobVariable) + "=" + job::to_string(job.segment.address()));
}

void Launcher::finish(LocalJob& job) {
    if (job.failing && job.deadline != 0) {
        // The ranks have ended. Other processes that the ranks started get the rest of the grace period.
        const bool left = std::any_of(job.ranks.begin(), job.ranks.end(),
                                      [](const LocalRank& rank) { return rank.pid > 0 && kill(-rank.pid, 0) == 0; });
        if (left) return;
        loop_.cancel(job.deadline);
        job.deadline = 0;
        kill_rest(job);
    }
    if (job.failing) {
        for (LocalRank& rank : job.ranks) release_guard(rank);
    }
    if (std::exchange(job.reported, true)) return;
    if (output_ && job.style.capture) output_->end_job(job.id());
    superior_->on_all_ended(job);
}

void Launcher::store_ended(LocalJob& job) {
    // Keep the segment for a while: a parent may only now open the segment of a child that ended quickly, to see that it existed and how it
    // ended.
    ended_.push_back(std::move(job.segment));
    if (ended_.size() > kEndedKept) ended_.pop_front();
}

void Launcher::ring_everyone(const LocalJob* first) {
    if (first) ring_ranks(*first);
    for (const LocalJob& job : jobs_)
        if (&job != first) ring_ranks(job);
}

void Launcher::ring_ranks(const LocalJob& job) {
    for (size_t i = 0; i < job.ranks.size(); ++i) {
        const uint32_t rank = job.rank_of(i);
        // Skip ranks that are not initialized: their doorbell may be memory that is not touched yet, and should stay so.
        if (job.segment.cell(rank).state.load(std::memory_order_acquire) != RankState::initialized) continue;
        job::ring(*reinterpret_cast<job::Doorbell*>(job.segment.region(rank)));
    }
}

}  // namespace starling::launch
