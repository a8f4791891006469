// The launcher: starts processes on this host, watches them, and ends what must end. The heart of mpiexec, of the
// server that a program started without mpiexec gets when it spawns, and of the daemons on other hosts.
//
// Of each job it has the part that is on this host, and does with it what its Controller says.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

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
class InputForwarder;
class InputPipe;

struct LauncherSettings {
    const char* name = "mpiexec";  ///< how messages begin
    char** argv = nullptr;         ///< main's
    bool verbose = false;
    bool quiet = false;
};

/// What an order to start this host's part of a job came to.
struct StartOutcome {
    int error_class = 0;
    std::string text;
    size_t failed_program = 0;  ///< which command could not be started,
    uint32_t failed_index = 0;  ///< and how many of its processes could
};

/// Single-threaded; there is one per process.
class Launcher {
  public:
    Launcher(EventLoop& loop, const LauncherSettings& settings);
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    ~Launcher();

    /// Blocks signals, makes the descriptor limit generous, forks the guard. Returns false with
    /// failure_text().
    bool prepare();

    /// From before run() to its end there must be one.
    void set_superior(Controller* superior) { superior_ = superior; }
    Controller* superior() const { return superior_; }

    // --- what the Controller orders ---

    /// Creates this host's segment of the job and starts its ranks here, if it has any. If one can't be started, the
    /// others are ended and nothing is left.
    StartOutcome start_part(const JobSpec& spec, const JobPart& part);
    /// A segment of a job that has no ranks here. Null with failure_text().
    Job* make_stub(const job::JobDescription& description, const std::vector<uint32_t>& tree_hosts, uint32_t number);
    /// SIGTERM, and SIGKILL a moment later, to the ranks here; then Controller::all_gone. Harmless if they are being
    /// ended already.
    void end_part(Job& job, int failed_rank);
    /// SIGKILL at once.
    void kill_part(Job& job) { kill_rest(job); }
    void signal_part(const Job& job, int signal);
    /// Of a job that goes on without these ranks: all who look at this segment see it, and are rung. Those of this host are marked as
    /// soon as they are reaped, and those who wait are woken then.
    void mark_failed(Job& job, const std::vector<uint32_t>& ranks);
    /// The whole job is over, everywhere: processes that have met it see `state`, and nothing of it is kept.
    void release_part(Job& job, job::JobState state);
    /// As if it had never been started.
    void take_back_part(Job& job);
    /// Standard input for rank 0, which is here; empty: its end. `taken` as in InputPipe.
    void feed_input(Job& job, std::string data);
    std::function<void(job::JobId)> on_input_taken;
    /// The stacks of the job's ranks here, to the job's standard error, while this goes on; `done` is called then.
    void show_stacks(Job& job, std::function<void()> done);

    /// Told of every signal that this process gets, SIGCHLD aside.
    std::function<void(int signal)> on_signal;
    /// Told of child processes that are not ranks.
    std::function<void(pid_t pid, int status)> on_other_child;
    /// Says instead of writing to standard error.
    std::function<void(const std::string& sentence)> on_say;

    // --- jobs that others have started ---

    /// Takes on a singleton's job, whose process this launcher serves. Null with failure_text().
    Job* adopt(const job::JobAddress& address);

    /// Takes on a job whose processes another manager starts, and whose segment is this process's own, until release().
    Job& adopt(job::JobSegment&& segment);
    /// A rank that this launcher did not start is gone.
    void external_exit(Job& job, uint32_t rank, bool failed);
    /// A job that this launcher did not start has failed; `failed_rank`: -1 if none of its ranks here has.
    void fail_external(Job& job, int failed_rank = -1);
    /// Nobody of a job that this launcher did not start is here any more. `job` is gone soon.
    void release(Job& job);

    /// Runs until somebody stops the loop, and returns what the loop does.
    int run();
    /// A child that is no rank: `ended` is called when it has been reaped.
    void expect_helper(pid_t pid, std::function<void()> ended) { helpers_[pid] = std::move(ended); }

    /// Ends the guard; for those who never come to run().
    void shut_down() { guard_.dismiss(); }

    Job* find_job(job::JobId id);
    std::list<Job>& jobs() { return jobs_; }
    /// Where the segment of a job is that is here or was a moment ago. False if there is none.
    bool find_segment(job::JobId id, job::JobAddress& out) const;

    EventLoop& loop() { return loop_; }
    OutputTagger& output();
    std::string name_of(const Job& job, uint32_t rank) const;
    void ring_ranks(const Job& job);

    /// "<name>: <sentence>" to standard error, as one write. say() is silent with --quiet.
    [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);
    /// Several lines for the user, of any length, on this process's own standard error. Neither waits for who reads it.
    void say_all(std::string_view text);
    [[gnu::format(printf, 2, 3)]] void detail(const char* format, ...);

  private:
    struct Running {
        Job* job;
        uint32_t rank;
    };
    struct Exit {
        Running who;
        int status;
    };

    void describe(Job& job, const JobSpec& spec) const;
    bool launch_all(Job& job, const JobSpec& spec, const JobPart& part, StartOutcome& outcome);
    /// Which cores a process is given.
    struct Cores {
        cpu_set_t cpus;
        cpu_set_t usable;
        int bound_to = -1;  ///< in `cores_`; -1: not bound
    };
    /// Before a job's processes start: whether they are to begin on the least used cores (sets `use_`).
    void count_cores(const Job& job);
    /// `cores` must last as long as `start`.
    void assign_cores(Job& job, uint32_t rank, Cores& cores, ProcessStart& start);
    void report_binding(Job& job, uint32_t rank);
    StartedProcess launch_one(Job& job, uint32_t rank, ProcessStart start, bool forward_input);
    bool open_output(const Job& job, uint32_t rank, ProcessStart& start, int (&ours)[3]);
    int open_input(Job& job, int& pipe_end);
    void watch_for_other_library(job::JobId id, std::chrono::milliseconds wait);
    void take_back(Job& job);
    bool watch_signals();
    void on_signals();
    void reap();
    void note_exit(const Exit& exit);
    bool counts_as_failure(const Job& job, uint32_t rank, int status) const;
    std::string what_happened(const Job& job, uint32_t rank, int status) const;
    void note_failure(Job& job, uint32_t rank, int status);
    void note_absent(Job& job, uint32_t rank);
    std::string absence_of(const Job& job, uint32_t rank) const;
    Look worth_a_look(job::JobId id);
    void fail_for_absent(Job& job, uint32_t absent);
    void end_ranks(Job& job, int failed_rank);
    void kill_rest(Job& job);
    void mark_and_wake(Job& job, const std::vector<uint32_t>& ranks);
    void release_guard(Rank& rank);
    void forget_unless_left_over(Job& job, Rank& rank);
    void finish(Job& job);
    void ring_everyone(const Job* first = nullptr);
    void on_external_exit(Job& job, int pid_fd);
    void keep_ended(Job& job);

    EventLoop& loop_;
    LauncherSettings settings_;
    OrphanReaper guard_;
    std::unique_ptr<ControlServer> control_;
    std::string mark_;
    int signal_fd_ = -1;
    sigset_t original_mask_{};
    rlimit original_descriptors_{};
    bool descriptors_raised_ = false;

    std::list<Job> jobs_;
    static constexpr size_t kEndedKept = 16;
    std::deque<job::JobSegment> ended_;  ///< of the jobs that ended last
    std::unordered_map<pid_t, Running> running_;
    int null_input_ = -1;
    CoreMap cores_;
    std::optional<CoreUse> use_;  ///< while a job is started whose ranks begin on the least used cores

    std::unique_ptr<OutputTagger> output_;
    std::unique_ptr<InputForwarder> input_;
    std::unordered_map<job::JobId, std::unique_ptr<InputPipe>> input_pipes_;
    Controller* superior_ = nullptr;
    std::unordered_map<pid_t, std::function<void()>> helpers_;  ///< children that are not ranks, and what follows them
};

}  // namespace starling::launch
