// The launcher: starts jobs, watches their processes, and ends what must end. The heart of mpiexec, and of
// the server that a program started without mpiexec gets when it spawns.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "launch/binding.h"
#include "launch/event_loop.h"
#include "launch/guard.h"
#include "launch/job.h"
#include "launch/process_start.h"

namespace starling::launch {

class ControlServer;
class OutputTagger;
class InputForwarder;

inline constexpr uint32_t kMaxProcesses = 1000000;  ///< of one job

struct LauncherSettings {
    const char* name = "mpiexec";  ///< how messages begin
    char** argv = nullptr;         ///< main's
    bool tag_output = false;
    bool verbose = false;
    bool quiet = false;
    bool bind_to_core = false;
    int timeout_seconds = 0;  ///< 0: none
};

/// What a request to start a job came to.
struct StartOutcome {
    int error_class = 0;
    std::string text;
    Job* job = nullptr;          ///< null unless error_class is MPI_SUCCESS
    std::vector<int32_t> codes;  ///< one per requested process: MPI_SUCCESS or an error class
    size_t failed_program = 0;   ///< which command could not be started,
    uint32_t failed_index = 0;   ///< and how many of its processes could
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

    /// Creates the segment and starts all processes. If one can't be started, the others are ended and
    /// nothing is left.
    StartOutcome start_job(const JobSpec& spec);

    /// The same for a spawn, with fewer processes where Program::soft allows it. Codes are for all that
    /// were asked for.
    StartOutcome start_soft(JobSpec spec);

    /// Takes on a singleton's job, whose process this launcher did not start and serves.
    bool adopt(const boot::JobAddress& address);

    /// Runs until all jobs have ended. Returns mpiexec's exit code.
    int run();

    /// Ends the guard; for those who never come to run().
    void shut_down() { guard_.dismiss(); }

    Job* find_job(boot::JobId id);
    /// The child and its parents part: one may fail without the other.
    void disconnect(Job& child) { child.connected = false; }

    EventLoop& loop() { return loop_; }
    const LauncherSettings& settings() const { return settings_; }

    /// "<name>: <sentence>" to standard error, as one write. say() is silent with --quiet.
    [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);
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

    bool launch_all(Job& job, const JobSpec& spec, StartOutcome& outcome);
    StartedProcess launch_one(Job& job, uint32_t rank, ProcessStart start, bool forward_input);
    void take_back(Job& job);
    bool watch_signals();
    void on_signals();
    void forward_signal(int signal);
    void reap();
    void note_exit(const Exit& exit);
    bool counts_as_failure(const Job& job, uint32_t rank, int status) const;
    void report(const Job& job, uint32_t rank, int status);
    void fail_job(Job& job, int failed_rank, int exit_code);
    void fail_descendants(const Job& parent);
    void kill_rest(Job& job);
    void release_guard(Rank& rank);
    void finish(Job& job);
    void remove_ended();
    void ring_everyone();
    void on_timeout();
    void on_external_exit(Job& job, int pid_fd);
    std::string name_of(const Job& job, uint32_t rank) const;

    EventLoop& loop_;
    LauncherSettings settings_;
    Guard guard_;
    std::unique_ptr<ControlServer> control_;
    std::string mark_;
    int signal_fd_ = -1;
    sigset_t original_mask_{};
    rlimit original_descriptors_{};
    bool descriptors_raised_ = false;

    std::list<Job> jobs_;
    static constexpr size_t kEndedKept = 16;
    std::deque<boot::JobSegment> ended_;  ///< of the spawned jobs that ended last
    std::unordered_map<pid_t, Running> running_;
    uint32_t jobs_started_ = 0;
    int exit_code_ = 0;
    int interrupts_ = 0;
    int forwarded_signal_ = 0;
    bool timed_out_ = false;
    int null_input_ = -1;
    CoreMap cores_;

    std::unique_ptr<OutputTagger> output_;
    std::unique_ptr<InputForwarder> input_;
};

}  // namespace starling::launch
