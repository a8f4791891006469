// The launcher: starts processes on this host, monitors them, and ends them. It is the core of mpiexec, of the daemons on other hosts, and
// of the server that a program without mpiexec starts when it spawns.
//
// The launcher holds this host's part of each job, and carries out the orders of its Controller.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "launch/common/event_loop.h"
#include "launch/common/process_start.h"
#include "launch/process/binding.h"
#include "launch/process/controller.h"
#include "launch/process/core_load.h"
#include "launch/process/ended_look.h"
#include "launch/process/job.h"
#include "launch/process/orphan_reaper.h"

namespace starling::launch {

class ControlServer;
class OutputTagger;
struct OutputRoute;
class InputForwarder;
class InputFan;

struct LauncherSettings {
    const char* name = "mpiexec";  ///< name that begins each message to the user
    char** argv = nullptr;         ///< arguments of main(), which the guard process overwrites
    bool verbose = false;
    bool quiet = false;
};

/// The result of starting this host's part of a job.
struct StartOutcome {
    int error_class = 0;
    std::string text;
    size_t failed_program = 0;  ///< index of the command that failed to start
    uint32_t failed_index = 0;  ///< number of processes of that command that did start
    bool cannot_run = false;    ///< true: the program itself can't be started, as start_failure() says
};

/// Starts, monitors and ends the ranks of this host. Single-threaded; one instance per process.
class Launcher {
  public:
    Launcher(EventLoop& loop, const LauncherSettings& settings);
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    ~Launcher();

    /// Blocks signals, raises the descriptor limit, forks the guard process. Returns false and sets failure_text() on failure.
    bool prepare();

    /// Sets the Controller, which must exist from before run() until run() returns.
    void set_superior(Controller* superior) { superior_ = superior; }
    Controller* superior() const { return superior_; }

    // --- functions that carry out orders of the Controller ---

    /// Creates this host's segment of the job and starts the job's ranks of this host, if any. If one fails to start, ends the others and
    /// removes the segment.
    StartOutcome start_part(const JobSpec& spec, const JobPart& part);
    /// Creates a segment for a job that has no ranks here. Returns null and sets failure_text() on failure.
    LocalJob* make_stub(const job::JobDescription& description, const std::vector<uint32_t>& tree_hosts, uint32_t number);
    /// Sends SIGTERM to the ranks here, and SIGKILL after a grace period; then Controller::on_all_ended is called. Does nothing if the ranks
    /// are already being ended.
    void end_part(LocalJob& job, int failed_rank);
    /// Sends SIGKILL to the job's ranks here at once.
    void kill_part(LocalJob& job) { kill_rest(job); }
    void signal_part(LocalJob& job, int signal);
    /// Marks ranks as failed in a job that continues without them: all readers of this segment see the marks, and all ranks here are woken.
    /// Ranks of this host are marked earlier, when they are reaped, and the ranks that wait for them are woken then.
    void mark_failed(LocalJob& job, const std::vector<uint32_t>& ranks);
    /// Releases the job, which has ended on all hosts: processes that have its segment mapped see `state`.
    void release_part(LocalJob& job, job::JobState state);
    /// Undoes start_part(), as if the job had not been started.
    void undo_part(LocalJob& job);
    /// Passes standard input to the ranks here that receive it; an empty text marks the end. on_input_read is called as InputPipe's `on_taken`.
    void feed_input(const LocalJob& job, const std::string& data);
    std::function<void(job::JobId)> on_input_read;
    /// Writes the stacks of the job's ranks here to the job's standard error, while the loop continues; then calls `done`.
    void show_stacks(LocalJob& job, std::function<void()> done);

    /// Called for every signal of this process except SIGCHLD.
    std::function<void(int signal)> on_signal;
    /// Called for each ended child process that is not a rank.
    std::function<void(pid_t pid, int status)> on_other_child;
    /// Called with a sentence that would otherwise go to standard error.
    std::function<void(const std::string& sentence)> on_print;

    // --- jobs that this launcher did not start ---

    /// Adopts the job of a singleton, which started this launcher. Returns null and sets failure_text() on failure.
    LocalJob* adopt(const job::JobAddress& address);

    /// Adopts a job whose processes another manager starts, and whose segment this process owns, until release().
    LocalJob& adopt(job::JobSegment&& segment);
    /// Handles the end of a rank that this launcher did not start.
    void external_exit(LocalJob& job, uint32_t rank, bool failed);
    /// Handles the failure of a job that this launcher did not start; `failed_rank`: -1 if none of its ranks here failed.
    void fail_external(LocalJob& job, int failed_rank = -1);
    /// Ends the part of an adopted job: no process of the job is left on this host. `job` becomes invalid soon.
    void release(LocalJob& job);

    /// Runs until the loop is stopped, and returns the loop's result.
    int run();
    /// Registers a child that is not a rank: `ended` is called when it has been reaped.
    void expect_helper(pid_t pid, std::function<void()> ended) { helpers_[pid] = std::move(ended); }

    /// Ends the guard process, for callers that never call run().
    void shut_down() { guard_.dismiss(); }

    LocalJob* find_job(job::JobId id);
    std::list<LocalJob>& jobs() { return jobs_; }
    /// Finds the segment of a job that runs here or ended a moment ago. Returns false if there is none.
    bool find_segment(job::JobId id, job::JobAddress& out) const;

    EventLoop& loop() { return loop_; }
    OutputTagger& output();
    std::string name_of(const LocalJob& job, uint32_t rank) const;
    void ring_ranks(const LocalJob& job);

    /// Writes "<name>: <sentence>" to standard error with one write. print() is silent with --quiet.
    [[gnu::format(printf, 2, 3)]] void print(const char* format, ...);
    /// print_all() writes lines of any length to this process's own standard error, without waiting for a slow reader. detail() writes only
    /// with --verbose.
    void print_all(std::string_view text);
    [[gnu::format(printf, 2, 3)]] void detail(const char* format, ...);

  private:
    struct Running {
        LocalJob* job;
        uint32_t rank;
    };
    struct Exit {
        Running who;
        int status;
    };

    void describe(LocalJob& job, const JobSpec& spec) const;
    void report_start(const LocalJob& job, uint32_t started, EventLoop::Clock::time_point& silent_since);
    bool launch_all(LocalJob& job, const JobSpec& spec, const JobPart& part, StartOutcome& outcome);
    /// The cores on which one process that is not bound begins, and those that it may use.
    struct StartCores {
        cpu_set_t cpus;
        cpu_set_t usable;
    };
    /// Selects the processors of the job's ranks here, if they are to be bound. Returns an empty string, or a sentence that describes the
    /// error.
    std::string claim_processors(LocalJob& job, const JobSpec& spec);
    void release_processors(LocalRank& rank);
    /// Decides, before the processes of a job start, whether they start on the least used cores; if so, sets `use_`.
    void count_cores(const LocalJob& job);
    /// Selects the cores of a process. `cores` must live as long as `start`.
    void assign_cores(LocalJob& job, uint32_t rank, StartCores& cores, ProcessStart& start);
    void report_binding(LocalJob& job, uint32_t rank);
    StartedProcess launch_one(LocalJob& job, uint32_t rank, ProcessStart start, const JobSpec& spec);
    OutputRoute route_of(const LocalJob& job, uint32_t rank, int stream) const;
    bool open_output(const LocalJob& job, uint32_t rank, ProcessStart& start, int (&ours)[3], std::string& file);
    int open_input(LocalJob& job, uint32_t rank, bool alone, int& pipe_end);
    void watch_for_other_library(job::JobId id, std::chrono::milliseconds wait);
    bool look_for_other_library(job::JobId id);
    void undo_start(LocalJob& job);
    bool watch_signals();
    void on_signals();
    void reap();
    void note_exit(const Exit& exit);
    bool counts_as_failure(const LocalJob& job, uint32_t rank, int status) const;
    std::string what_happened(const LocalJob& job, uint32_t rank, int status) const;
    void note_failure(LocalJob& job, uint32_t rank, int status, job::RankState before);
    void note_absent(LocalJob& job, uint32_t rank);
    std::string absence_of(const LocalJob& job, uint32_t rank) const;
    NextCheck check_of(job::JobId id);
    void fail_for_absent(LocalJob& job, uint32_t absent);
    void end_ranks(LocalJob& job, int failed_rank);
    void kill_rest(LocalJob& job);
    void start_death_watches(LocalJob& job);
    void on_early_death(LocalJob& job, uint32_t rank);
    void mark_and_wake(LocalJob& job, std::span<const uint32_t> ranks);  ///< allocates nothing
    void release_guard(LocalRank& rank);
    void forget_unless_left_over(LocalJob& job, LocalRank& rank);
    void finish(LocalJob& job);
    void ring_everyone(const LocalJob* first = nullptr);
    void on_external_exit(LocalJob& job, int pid_fd);
    void store_ended(LocalJob& job);

    EventLoop& loop_;
    LauncherSettings settings_;
    OrphanReaper guard_;
    std::unique_ptr<ControlServer> control_;
    std::string mark_;
    int signal_fd_ = -1;
    sigset_t original_mask_{};
    rlimit original_descriptors_{};
    bool descriptors_raised_ = false;

    Mutex marks_;  ///< held while ranks are marked as failed, by this thread or by that of a death watch
    std::list<LocalJob> jobs_;
    static constexpr size_t kEndedKept = 16;
    std::deque<job::JobSegment> ended_;  ///< segments of the jobs that ended most recently
    std::unordered_map<pid_t, Running> running_;
    int null_input_ = -1;
    ProcessorMap processors_;       ///< empty until a job binds its ranks
    uint32_t ranks_of_others_ = 0;  ///< number of this user's ranks in other jobs, counted when a job starts
    std::optional<CoreUse> use_;    ///< load of the cores; set while a job starts whose ranks start on the least used ones

    std::unique_ptr<OutputTagger> output_;
    std::unique_ptr<InputForwarder> input_;
    uint32_t input_rank_ = 0;  ///< rank that `input_` feeds
    std::unordered_map<job::JobId, std::unique_ptr<InputFan>> input_pipes_;
    Controller* superior_ = nullptr;
    std::unordered_map<pid_t, std::function<void()>> helpers_;  ///< called when a child that is not a rank ends, by pid
};

}  // namespace starling::launch
