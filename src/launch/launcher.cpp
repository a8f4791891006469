#include "launch/launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "boot/doorbell.h"
#include "boot/environment.h"
#include "launch/hosts.h"
#include "launch/input.h"
#include "launch/output.h"
#include "mpi.h"

namespace starling::launch {

namespace {

using boot::JobState;
using boot::RankState;
using std::chrono::milliseconds;

constexpr milliseconds kMercy{250};  // between SIGTERM and SIGKILL
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Launcher::Launcher(EventLoop& loop, const LauncherSettings& settings) : loop_(loop), settings_(settings) {}

Launcher::~Launcher() {
    if (signal_fd_ >= 0) close(signal_fd_);
    if (null_input_ >= 0) close(null_input_);
}

void Launcher::say(const char* format, ...) {
    if (settings_.quiet) return;
    char text[2048];
    int length = std::snprintf(text, sizeof text, "%s: ", settings_.name);
    va_list arguments;
    va_start(arguments, format);
    length +=
        std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length) - 1, format, arguments);
    va_end(arguments);
    length = std::min<int>(length, sizeof text - 2);
    text[length++] = '\n';
    if (write(2, text, static_cast<size_t>(length)) < 0) return;
}

void Launcher::detail(const char* format, ...) {
    if (!settings_.verbose) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say("%s", text);
}

bool Launcher::prepare() {
    signal(SIGPIPE, SIG_IGN);
    if (!watch_signals()) return false;
    // Pipes and segments need descriptors; the ranks get back the limit the user set.
    if (getrlimit(RLIMIT_NOFILE, &original_descriptors_) == 0) {
        rlimit generous = original_descriptors_;
        generous.rlim_cur = generous.rlim_max;
        descriptors_raised_ = setrlimit(RLIMIT_NOFILE, &generous) == 0;
    }
    uint64_t random = 0;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    random = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
    char mark[64];
    std::snprintf(mark, sizeof mark, "STARLING_LAUNCHER=%d.%llx", getpid(),
                  static_cast<unsigned long long>(random));
    mark_ = mark;
    return guard_.start(mark_, settings_.argv);
}

bool Launcher::watch_signals() {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (int signal : kForwarded) sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, &original_mask_);
    signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0) {
        fail(MPI_ERR_OTHER, "cannot watch signals: %s%s", std::strerror(errno),
             errno == EMFILE || errno == ENFILE ? "; raise `ulimit -n`" : "");
        return false;
    }
    return loop_.watch(signal_fd_, EPOLLIN, [this](uint32_t) { on_signals(); });
}

void Launcher::on_signals() {
    signalfd_siginfo info;
    bool children = false;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) {
        const int signal = static_cast<int>(info.ssi_signo);
        if (signal == SIGCHLD) {
            children = true;
        } else {
            forward_signal(signal);
        }
    }
    if (children) reap();
}

void Launcher::forward_signal(int signal) {
    if (signal == SIGINT && ++interrupts_ > 1) {
        for (Job& job : jobs_) kill_rest(job);
        return;
    }
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) forwarded_signal_ = signal;
    for (const auto& [pid, who] : running_) kill(-pid, signal);
    if (signal == SIGTSTP) kill(getpid(), SIGSTOP);
    if (signal == SIGCONT && input_) input_->resume();
}

StartOutcome Launcher::start_job(const JobSpec& spec) {
    StartOutcome outcome;
    uint32_t size = 0;
    for (const Program& program : spec.programs) size += program.count;
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

namespace {

// A program's environment: the launcher's, the command's own on top, room for Starling's three at the end.
class Environment {
  public:
    Environment(const Program& program, const std::string& job, const std::string& mark) {
        for (const auto& [name, value] : program.environment) set(name, value);
        set(boot::kJobVariable, job);
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

bool Launcher::launch_all(Job& job, const JobSpec& spec, StartOutcome& outcome) {
    const std::string address = boot::to_string(job.segment.address());
    if (null_input_ < 0) null_input_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    uint32_t rank = 0;
    for (const Program& program : spec.programs) {
        Environment environment(program, address, mark_);
        std::string_view path = program.search_path;
        if (path.empty()) path = environment.value("PATH");
        if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
        const std::string file = find_program(program.argv[0], path, program.directory);
        const std::vector<char*> argv = c_strings(program.argv);

        ProcessStart start;
        start.path = file.c_str();
        start.argv = argv.data();
        start.directory = program.directory.empty() ? nullptr : program.directory.c_str();
        start.signals = &original_mask_;
        start.descriptors = descriptors_raised_ ? &original_descriptors_ : nullptr;

        for (uint32_t i = 0; i < program.count; ++i, ++rank) {
            boot::RankCell& cell = job.segment.cell(rank);
            cell.appnum = program.appnum;
            start.envp = environment.for_rank(rank);
            start.guard_slot = guard_.acquire_slot();
            start.input = null_input_;
            StartedProcess process;
            int pipe_in = -1, pipe_out = -1, pipe_err = -1;
            if (rank == 0 && spec.forward_input) {
                start.input = 0;
                if (isatty(0)) {
                    input_ = std::make_unique<InputForwarder>(loop_);
                    start.input = pipe_in = input_->open_pipe();
                }
            }
            if (settings_.tag_output) {
                if (!output_) output_ = std::make_unique<OutputTagger>(loop_);
                const std::string prefix =
                    job.number == 0 ? "[" + std::to_string(rank) + "] "
                                    : "[" + std::to_string(job.number) + ":" + std::to_string(rank) + "] ";
                start.output = pipe_out = output_->open_pipe(1, prefix);
                start.error = pipe_err = pipe_out < 0 ? -1 : output_->open_pipe(2, prefix);
            }
            if (settings_.tag_output && pipe_err < 0) {
                process.error = errno;
                process.step = "pipe";
            } else if (file.empty()) {
                process.step = "find";
            } else {
                process = start_process(start);
            }
            for (int fd : {pipe_in, pipe_out, pipe_err}) {
                if (fd >= 0) close(fd);
            }
            if (process.pid < 0 || process.error != 0) {
                if (process.pid > 0) waitpid(process.pid, nullptr, 0);
                guard_.release_slot(start.guard_slot);
                cell.state.store(RankState::not_started, std::memory_order_relaxed);
                outcome.error_class = MPI_ERR_SPAWN;
                outcome.text = start_failure(program.argv[0], program.directory, process);
                outcome.codes.assign(job.ranks.size(), MPI_ERR_SPAWN);
                for (Rank& started : job.ranks) {
                    if (!started.running) continue;
                    kill(-started.pid, SIGKILL);
                    waitpid(started.pid, nullptr, 0);
                    running_.erase(started.pid);
                    guard_.release_slot(started.guard_slot);
                }
                return false;
            }
            cell.pid.store(process.pid, std::memory_order_relaxed);
            job.ranks[rank] = {process.pid, true, start.guard_slot};
            running_[process.pid] = {&job, rank};
            ++job.running;
            detail("rank %u of %s is process %d", rank, program.argv[0].c_str(), process.pid);
        }
    }
    if (spec.forward_input && input_) input_->resume();
    return true;
}

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
    if (!job.failing) guard_.release_slot(record.guard_slot);
    if (job.running == 0) finish(job);
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
        if (job.parent != parent.id() || !job.connected || job.failing) continue;
        detail("spawned job %u ends with its parent", job.number);
        fail_job(job, -1, 1);
    }
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
        for (const Rank& rank : job.ranks) {
            if (rank.guard_slot) guard_.release_slot(rank.guard_slot);
        }
    } else {
        job.segment.header().state.store(JobState::ended, std::memory_order_release);
        ring_everyone();
    }
}

void Launcher::remove_ended() {
    jobs_.remove_if([](const Job& job) { return job.running == 0 && job.deadline == 0; });
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

Job* Launcher::find_job(boot::JobId id) {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [id](const Job& job) { return job.id() == id; });
    return found == jobs_.end() ? nullptr : &*found;
}

int Launcher::run() {
    if (settings_.timeout_seconds > 0) {
        loop_.after(std::chrono::seconds(settings_.timeout_seconds), [this] { on_timeout(); });
    }
    const int code = loop_.run();
    if (output_) output_->drain();
    guard_.dismiss();
    return code;
}

void Launcher::on_timeout() {
    timed_out_ = true;
    say("the job has not ended after %d s (--timeout): ending it", settings_.timeout_seconds);
    for (Job& job : jobs_) fail_job(job, -1, 124);
}

}  // namespace starling::launch
