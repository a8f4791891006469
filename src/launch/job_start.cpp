// How jobs start.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "boot/environment.h"
#include "launch/control_server.h"
#include "launch/input.h"
#include "launch/launcher.h"
#include "launch/output.h"
#include "mpi.h"

namespace starling::launch {

namespace {

// A program's environment: the launcher's, the command's own on top, room for Starling's three at the end.
class Environment {
  public:
    Environment(const Program& program, const std::string& job, const std::string& mark) {
        for (const auto& [name, value] : program.environment) set(name, value);
        set(boot::kJobVariable, job);
        set("STARLING_CHECKED", "1");  // bad settings have been told once, by mpiexec or the parent
        own_.push_back(mark);
        names_.push_back(mark.substr(0, mark.find('=')));
        set(boot::kRankVariable, "");
        rank_ = own_.size() - 1;
        if (!program.clean_environment) {
            for (char** entry = environ; *entry; ++entry) {
                if (!overridden(*entry)) pointers_.push_back(*entry);
            }
        }
        const size_t inherited = pointers_.size();
        for (std::string& entry : own_) pointers_.push_back(entry.data());
        pointers_.push_back(nullptr);
        rank_slot_ = inherited + rank_;
    }

    char* const* for_rank(uint32_t rank) {
        own_[rank_] = std::string(boot::kRankVariable) + "=" + std::to_string(rank);
        pointers_[rank_slot_] = own_[rank_].data();
        return pointers_.data();
    }

    std::string_view value(std::string_view name) const {
        for (char* entry : pointers_) {
            const std::string_view text = entry ? entry : "";
            if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
                return text.substr(name.size() + 1);
        }
        return {};
    }

  private:
    void set(std::string_view name, std::string_view value) {
        std::string entry = std::string(name) + "=" + std::string(value);
        const auto known = std::find(names_.begin(), names_.end(), name);
        if (known != names_.end()) {
            own_[static_cast<size_t>(known - names_.begin())] = std::move(entry);
            return;
        }
        names_.emplace_back(name);
        own_.push_back(std::move(entry));
    }
    bool overridden(std::string_view entry) const {
        const std::string_view name = entry.substr(0, entry.find('='));
        return std::find(names_.begin(), names_.end(), name) != names_.end();
    }

    std::vector<std::string> own_;
    std::vector<std::string> names_;
    std::vector<char*> pointers_;
    size_t rank_ = 0, rank_slot_ = 0;
};

}  // namespace

StartOutcome Launcher::start_job(const JobSpec& spec) {
    StartOutcome outcome;
    uint32_t size = 0;
    for (const Program& program : spec.programs) size += program.count;
    if (size == 0) return {MPI_ERR_SPAWN, "a job of no processes can't be started", nullptr, {}};
    Job job;
    outcome.error_class = boot::JobSegment::create(size, spec.blob.data(), spec.blob.size(), job.segment);
    if (outcome.error_class != MPI_SUCCESS) {
        outcome.text = failure_text();
        return outcome;
    }
    job.number = jobs_started_;
    job.parent = spec.parent;
    job.ranks.resize(size);
    boot::JobHeader& header = job.segment.header();
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0) {
        header.universe_size = std::max(size, static_cast<uint32_t>(CPU_COUNT(&usable)));
    }
    std::snprintf(header.control_socket, sizeof header.control_socket, "%s", control_->name().c_str());
    std::snprintf(header.command, sizeof header.command, "%s", spec.programs[0].argv[0].c_str());
    for (const Program& program : spec.programs) job.programs.push_back(program.argv[0]);

    jobs_.push_back(std::move(job));
    Job& placed = jobs_.back();
    if (launch_all(placed, spec, outcome)) {
        ++jobs_started_;
        outcome.job = &placed;
        outcome.codes.assign(size, MPI_SUCCESS);
    } else {
        jobs_.pop_back();
    }
    return outcome;
}

bool Launcher::launch_all(Job& job, const JobSpec& spec, StartOutcome& outcome) {
    const std::string address = boot::to_string(job.segment.address());
    uint32_t rank = 0;
    for (size_t index = 0; index < spec.programs.size(); ++index) {
        const Program& program = spec.programs[index];
        Environment environment(program, address, mark_);
        std::string_view path = program.search_path;
        if (path.empty()) path = environment.value("PATH");
        if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
        const std::string file = find_program(program.argv[0], path, program.directory);
        const std::vector<char*> argv = c_strings(program.argv);

        ProcessStart start;
        start.path = file.empty() ? nullptr : file.c_str();
        start.argv = argv.data();
        start.directory = program.directory.empty() ? nullptr : program.directory.c_str();
        start.signals = &original_mask_;
        start.descriptors = descriptors_raised_ ? &original_descriptors_ : nullptr;
        for (uint32_t i = 0; i < program.count; ++i, ++rank) {
            job.segment.cell(rank).appnum = program.appnum;
            start.envp = environment.for_rank(rank);
            const StartedProcess process = launch_one(job, rank, start, spec.forward_input && rank == 0);
            if (process.pid > 0) continue;
            outcome.error_class = MPI_ERR_SPAWN;
            outcome.text = start_failure(program.argv[0], program.directory, process);
            outcome.codes.assign(job.ranks.size(), MPI_ERR_SPAWN);
            outcome.failed_program = index;
            outcome.failed_index = i;
            take_back(job);
            return false;
        }
        detail("started %u of %s", program.count, program.argv[0].c_str());
    }
    if (spec.forward_input && input_) input_->resume();
    return true;
}

StartedProcess Launcher::launch_one(Job& job, uint32_t rank, ProcessStart start, bool forward_input) {
    StartedProcess process;
    if (!start.path) {
        process.step = "find";
        return process;
    }
    if (null_input_ < 0) null_input_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    start.input = null_input_;
    int ours[3] = {-1, -1, -1};  // the ranks' ends of pipes
    process.step = "pipe";
    if (forward_input) {
        start.input = 0;
        if (isatty(0)) {
            input_ = std::make_unique<InputForwarder>(loop_);
            start.input = ours[0] = input_->open_pipe();
        }
    }
    if (settings_.tag_output) {
        if (!output_) output_ = std::make_unique<OutputTagger>(loop_);
        std::string prefix =
            "[" + (job.number > 0 ? std::to_string(job.number) + ":" : "") + std::to_string(rank) + "] ";
        start.output = ours[1] = output_->open_pipe(1, prefix);
        start.error = ours[2] = ours[1] < 0 ? -1 : output_->open_pipe(2, prefix);
    }
    cpu_set_t cpus;
    int core = -1;
    if (settings_.bind_to_core) {
        core = static_cast<int>(cores_.take(cpus));
        start.cpus = &cpus;
        job.segment.cell(rank).cpu = cores_.first_cpu(static_cast<uint32_t>(core));
    }
    if (start.input < 0 || (settings_.tag_output && start.error < 0)) {
        process.error = errno;
    } else {
        start.guard_slot = guard_.acquire_slot();
        process = start_process(start);
    }
    for (const int fd : ours) {
        if (fd >= 0) close(fd);
    }
    if (process.error != 0) {
        if (process.pid > 0) waitpid(process.pid, nullptr, 0);
        if (core >= 0) cores_.release(static_cast<uint32_t>(core));
        if (start.guard_slot) guard_.release_slot(start.guard_slot);
        process.pid = -1;
        job.segment.cell(rank).state.store(boot::RankState::not_started, std::memory_order_relaxed);
        return process;
    }
    // The program may be further already and have stored its own pid, which is another one behind a
    // wrapper.
    int32_t none = 0;
    job.segment.cell(rank).pid.compare_exchange_strong(none, process.pid, std::memory_order_relaxed);
    job.ranks[rank] = {process.pid, true, start.guard_slot, core};
    running_[process.pid] = {&job, rank};
    ++job.running;
    return process;
}

void Launcher::take_back(Job& job) {
    for (const Rank& rank : job.ranks) {
        if (!rank.running) continue;
        kill(-rank.pid, SIGKILL);
        waitpid(rank.pid, nullptr, 0);
        running_.erase(rank.pid);
        if (rank.core >= 0) cores_.release(static_cast<uint32_t>(rank.core));
        guard_.release_slot(rank.guard_slot);
    }
}

StartOutcome Launcher::start_soft(JobSpec spec) {
    std::vector<uint32_t> asked;
    for (Program& program : spec.programs) {
        asked.push_back(program.count);
        if (!program.soft.empty()) program.count = program.soft.back();
    }
    StartOutcome outcome;
    for (;;) {
        outcome = start_job(spec);
        if (outcome.job || outcome.error_class != MPI_ERR_SPAWN) break;
        // Fewer may do: the largest number allowed of those that could be started.
        Program& program = spec.programs[outcome.failed_program];
        const auto above = std::upper_bound(program.soft.begin(), program.soft.end(), outcome.failed_index);
        if (above == program.soft.begin() || above[-1] == 0) break;
        program.count = above[-1];
    }
    outcome.codes.clear();
    for (size_t i = 0; i < asked.size(); ++i) {
        for (uint32_t n = 0; n < asked[i]; ++n) {
            const bool runs = outcome.job && n < spec.programs[i].count;
            outcome.codes.push_back(runs ? MPI_SUCCESS : outcome.job ? MPI_ERR_SPAWN : outcome.error_class);
        }
    }
    return outcome;
}

}  // namespace starling::launch
