// Carries out the orders of the universe's root on this host.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/linux_calls.h"
#include "launch/common/hosts.h"
#include "launch/common/signals.h"
#include "launch/process/control_server.h"
#include "launch/process/input.h"
#include "launch/process/launcher.h"
#include "launch/process/output.h"
#include "launch/process/stack_traces.h"
#include "mpi.h"

namespace starling::launch {

using job::JobState;

namespace {
bool ends(int signal) { return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP; }
}  // namespace

StartOutcome Launcher::start_part(const JobSpec& spec, const JobPart& part) {
    StartOutcome outcome;
    LocalJob job;
    outcome.error_class = job::JobSegment::create(part.description, part.my_host, job.segment);
    if (outcome.error_class != MPI_SUCCESS) {
        outcome.text = failure_text();
        return outcome;
    }
    job.number = part.number;
    job.tree_hosts = part.tree_hosts;
    job.style = part.style;
    describe(job, spec);
    outcome.text = claim_processors(job, spec);
    if (!outcome.text.empty()) {
        outcome.error_class = MPI_ERR_SPAWN;
        return outcome;
    }
    jobs_.push_back(std::move(job));
    LocalJob& placed = jobs_.back();
    if (launch_all(placed, spec, part, outcome))
        start_death_watches(placed);
    else
        jobs_.pop_back();
    return outcome;
}

LocalJob* Launcher::make_stub(const job::JobDescription& description, const std::vector<uint32_t>& tree_hosts,
                              uint32_t number) {
    LocalJob job;
    if (job::JobSegment::create(description, job::kNoHost, job.segment) != MPI_SUCCESS) return nullptr;
    job.number = number;
    job.reported = true;  // this host has no ranks, so none has to be awaited
    job.tree_hosts = tree_hosts;
    job::JobHeader& header = job.segment.header();
    std::snprintf(header.control_socket, sizeof header.control_socket, "%s", control_->name().c_str());
    jobs_.push_back(std::move(job));
    return &jobs_.back();
}

void Launcher::end_part(LocalJob& job, int failed_rank) {
    if (!job.failing) end_ranks(job, failed_rank);
}

void Launcher::signal_part(LocalJob& job, int signal) {
    if (asks_to_end(signal)) job.asked_to_end = true;
    for (const LocalRank& rank : job.ranks) {
        if (!rank.running) continue;
        kill(-rank.pid, signal);
        if (ends(signal)) kill(-rank.pid, SIGCONT);  // a stopped process would not handle the signal
    }
    if (signal == SIGCONT && input_) input_->resume();
}

void Launcher::release_part(LocalJob& job, JobState state) {
    if (job.segment.header().state.load(std::memory_order_relaxed) == JobState::running)
        job.segment.header().state.store(state, std::memory_order_release);
    ring_everyone();
    if (job.running > 0 || job.deadline != 0) {
        // Should not happen, since the root waits for this host; make sure that no process is left.
        kill_rest(job);
        undo_start(job);
        if (job.deadline != 0) loop_.cancel(job.deadline);
    }
    for (LocalRank& rank : job.ranks) release_guard(rank);
    input_pipes_.erase(job.id());
    job.death_watches.clear();
    store_ended(job);
    jobs_.remove_if([&](const LocalJob& other) { return &other == &job; });
}

void Launcher::undo_part(LocalJob& job) {
    job.death_watches.clear();
    undo_start(job);
    if (job.deadline != 0) loop_.cancel(job.deadline);
    jobs_.remove_if([&](const LocalJob& other) { return &other == &job; });
}

void Launcher::feed_input(const LocalJob& job, const std::string& data) {
    const auto pipe = input_pipes_.find(job.id());
    if (pipe != input_pipes_.end()) {
        pipe->second->feed(data);
    } else if (!data.empty() && on_input_read) {
        on_input_read(job.id());
    }
}

void Launcher::show_stacks(LocalJob& job, std::function<void()> done) {
    std::vector<StackSubject> subjects;
    for (size_t i = 0; i < job.ranks.size(); ++i) {
        const uint32_t rank = job.rank_of(i);
        // With a wrapper, the rank is another process than the one that was started.
        if (job.ranks[i].running)
            subjects.push_back({{job.id(), rank},
                                job.segment.cell(rank).pid.load(std::memory_order_relaxed),
                                name_of(job, rank).substr(("rank " + std::to_string(rank)).size())});
    }
    // Output of several hosts arrives at the same time, so each line names its host.
    OutputRoute route;
    route.target = 2;
    route.prefix = host_name() + ": ";
    route.job = job.id();
    const int to = job.style.capture ? output().open_pipe(std::move(route)) : dup(2);
    if (to < 0) return done();
    // A debugger takes long, and the loop must continue: run it in a child.
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(to, 2);
        syscall(SYS_close_range, 3u, ~0u, 0u);
        std::fputs(take_stacks(subjects, job.id(), {}).c_str(), stderr);
        std::fflush(stderr);
        _exit(0);
    }
    close(to);
    if (pid < 0) return done();
    helpers_[pid] = std::move(done);
}

}  // namespace starling::launch
