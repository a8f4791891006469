// How jobs end: processes are reaped, failures told and spread, leftovers killed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "boot/doorbell.h"
#include "boot/environment.h"
#include "launch/control_server.h"
#include "launch/hosts.h"
#include "launch/input.h"
#include "launch/launcher.h"
#include "launch/output.h"
#include "launch/stacks.h"

namespace starling::launch {

namespace {

using boot::JobState;
using boot::RankState;

constexpr std::chrono::milliseconds kMercy{250};  // between SIGTERM and SIGKILL

int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void Launcher::reap() {
    // Several may have gone since the last look, and waitpid does not tell who went first: what was killed
    // or aborted is taken before what then gave up because of it.
    std::vector<Exit> exits;
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == guard_.pid()) {
            detail("the guard process was killed; starting another");
            if (!guard_.restart()) say("%s", std::string(failure_text()).c_str());
            continue;
        }
        const auto found = running_.find(pid);
        if (found == running_.end()) continue;
        exits.push_back({found->second, status});
        running_.erase(found);
    }
    const auto weight = [](const Exit& exit) {
        const boot::RankCell& cell = exit.who.job->segment.cell(exit.who.rank);
        if (WIFSIGNALED(exit.status)) return 0;
        return cell.aborted.load(std::memory_order_acquire) != 0 ? 1 : 2;
    };
    std::stable_sort(exits.begin(), exits.end(),
                     [&](const Exit& a, const Exit& b) { return weight(a) < weight(b); });
    for (const Exit& exit : exits) note_exit(exit);
    remove_ended();
}

bool Launcher::counts_as_failure(const Job& job, uint32_t rank, int status) const {
    const boot::RankCell& cell = job.segment.cell(rank);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
           cell.aborted.load(std::memory_order_acquire) != 0 ||
           cell.state.load(std::memory_order_acquire) == RankState::initialized;
}

void Launcher::note_exit(const Exit& exit) {
    Job& job = *exit.who.job;
    const uint32_t rank = exit.who.rank;
    Rank& record = job.ranks[rank];
    record.running = false;
    --job.running;
    if (record.core >= 0) cores_.release(static_cast<uint32_t>(record.core));
    boot::RankCell& cell = job.segment.cell(rank);
    const bool failed = counts_as_failure(job, rank, exit.status);
    if (failed && !job.failing) report(job, rank, exit.status);
    cell.exit_status.store(exit.status, std::memory_order_relaxed);
    cell.state.store(failed ? RankState::failed : RankState::exited, std::memory_order_release);
    if (failed && !job.failing) {
        int code = exit_code_of(exit.status);
        if (cell.aborted.load(std::memory_order_acquire) != 0)
            code = cell.abort_code.load(std::memory_order_relaxed) & 0xff;
        fail_job(job, static_cast<int>(rank), code == 0 ? 1 : code);
    }
    if (job.number == 0 && rank == 0 && input_) input_->stop();
    // While a job fails its groups are remembered, for what a dead wrapper leaves behind; else they are
    // forgotten.
    if (!job.failing) release_guard(record);
    if (job.running == 0) finish(job);
}

void Launcher::on_external_exit(Job& job, int pid_fd) {
    loop_.forget(pid_fd);
    close(pid_fd);
    // How it ended only its parent can know; whether it was meant to, its cell tells.
    job.running = 0;
    if (job.segment.cell(0).state.load(std::memory_order_acquire) == RankState::initialized)
        fail_job(job, 0, 1);
    finish(job);
    remove_ended();
}

std::string Launcher::name_of(const Job& job, uint32_t rank) const {
    const auto app = static_cast<size_t>(job.segment.cell(rank).appnum);
    std::string text = "rank " + std::to_string(rank);
    if (app < job.programs.size()) text += " (" + job.programs[app] + ")";
    if (job.number > 0) text += " of spawned job " + std::to_string(job.number);
    return text;
}

void Launcher::report(const Job& job, uint32_t rank, int status) {
    const boot::RankCell& cell = job.segment.cell(rank);
    const std::string name = name_of(job, rank);
    const pid_t pid = job.ranks[rank].pid;
    const char* host = host_name().c_str();
    if (timed_out_ || (WIFSIGNALED(status) && WTERMSIG(status) == forwarded_signal_)) return;
    char rest[64] = "";
    if (job.running > 0) std::snprintf(rest, sizeof rest, "; ending the other %u", job.running);
    if (cell.aborted.load(std::memory_order_acquire) != 0) {
        say("%s, process %d on %s, called MPI_Abort with code %d%s", name.c_str(), pid, host,
            cell.abort_code.load(std::memory_order_relaxed), rest);
    } else if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const char* abbreviation = sigabbrev_np(signal);
        say("%s, process %d on %s, was killed by signal %d (SIG%s, %s)%s%s", name.c_str(), pid, host,
            signal, abbreviation ? abbreviation : "?", strsignal(signal),
            WCOREDUMP(status) ? ", core dumped" : "", rest);
    } else if (WEXITSTATUS(status) != 0) {
        say("%s, process %d on %s, exited with code %d%s", name.c_str(), pid, host, WEXITSTATUS(status),
            rest);
    } else {
        say("%s, process %d on %s, exited without calling MPI_Finalize%s", name.c_str(), pid, host, rest);
    }
}

void Launcher::fail_job(Job& job, int failed_rank, int exit_code) {
    if (job.failing) return;
    job.failing = true;
    job.exit_code = exit_code;
    if (job.number == 0 && exit_code_ == 0) exit_code_ = exit_code;
    boot::JobHeader& header = job.segment.header();
    header.failed_rank.store(failed_rank, std::memory_order_relaxed);
    header.state.store(JobState::failed, std::memory_order_release);
    ring_everyone();
    for (const Rank& rank : job.ranks) {
        if (rank.pid > 0) kill(-rank.pid, SIGTERM);
    }
    if (!job.external) {
        job.deadline = loop_.after(kMercy, [this, &job] {
            job.deadline = 0;
            kill_rest(job);
            if (job.running == 0) finish(job);
            remove_ended();
        });
    }
    fail_descendants(job);
}

void Launcher::fail_descendants(const Job& parent) {
    for (Job& job : jobs_) {
        if (job.parent != parent.id() || !job.connected || job.failing || job.running == 0) continue;
        detail("spawned job %u ends with its parent", job.number);
        fail_job(job, -1, 1);
    }
}

void Launcher::release_guard(Rank& rank) {
    if (rank.guard_slot) guard_.release_slot(rank.guard_slot);
    rank.guard_slot = nullptr;
}

void Launcher::kill_rest(Job& job) {
    for (const Rank& rank : job.ranks) {
        if (rank.pid > 0) kill(-rank.pid, SIGKILL);
    }
    // Whoever left its process group still carries the job's address.
    if (!job.external)
        kill_marked(std::string(boot::kJobVariable) + "=" + boot::to_string(job.segment.address()));
}

void Launcher::finish(Job& job) {
    if (job.failing && job.deadline != 0) {
        // The ranks are gone; what they started gets the rest of its time, if there is any.
        const bool left = std::any_of(job.ranks.begin(), job.ranks.end(), [](const Rank& rank) {
            return rank.pid > 0 && kill(-rank.pid, 0) == 0;
        });
        if (left) return;
        loop_.cancel(job.deadline);
        job.deadline = 0;
        kill_rest(job);
    }
    if (job.failing) {
        for (Rank& rank : job.ranks) release_guard(rank);
    } else {
        job.segment.header().state.store(JobState::ended, std::memory_order_release);
        ring_everyone();
    }
}

void Launcher::remove_ended() {
    jobs_.remove_if([this](Job& job) {
        const bool gone = job.running == 0 && job.deadline == 0;
        if (!gone) return false;
        control_->job_ended(job.id());
        // Parents may only now be about to look at a child that was as quick as that: to see that it was
        // there, and how it ended, they need its segment.
        if (job.parent != 0) ended_.push_back(std::move(job.segment));
        if (ended_.size() > kEndedKept) ended_.pop_front();
        return true;
    });
    if (jobs_.empty()) loop_.stop(timed_out_ ? 124 : exit_code_);
}

void Launcher::ring_everyone() {
    for (Job& job : jobs_) {
        for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
            // The doorbell of a rank that has never slept is memory not touched so far: leave it so.
            if (job.segment.cell(rank).state.load(std::memory_order_acquire) != RankState::initialized)
                continue;
            boot::ring(*reinterpret_cast<boot::Doorbell*>(job.segment.region(rank)));
        }
    }
}

void Launcher::on_timeout() {
    say("the job has not ended after %d s (--timeout): ending it", settings_.timeout_seconds);
    timed_out_ = true;
    std::vector<std::pair<std::string, pid_t>> processes;
    for (const Job& job : jobs_) {
        for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
            // Behind a wrapper the rank is another process than the one that was started.
            const pid_t pid = job.segment.cell(rank).pid.load(std::memory_order_relaxed);
            if (job.ranks[rank].running) processes.emplace_back(name_of(job, rank), pid);
        }
    }
    print_stacks(processes);
    for (Job& job : jobs_) fail_job(job, -1, 124);
}

}  // namespace starling::launch
