#include "launch/client/run_job.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/config.h"
#include "base/error.h"
#include "launch/client/client.h"
#include "launch/client/debug_session.h"
#include "launch/client/debugger_table.h"
#include "launch/client/dry_run.h"
#include "launch/client/peer_options.h"
#include "launch/common/repeated_signal.h"
#include "launch/common/text.h"
#include "launch/process/input.h"
#include "launch/process/output.h"
#include "launch/process/process_environment.h"
#include "launch/universe/local_client.h"

namespace starling::launch {

namespace {

constexpr std::chrono::milliseconds kSilence{2000};        // time of silence on a terminal before progress is shown
constexpr std::chrono::milliseconds kDebuggersTime{1000};  // time for a debugger to end after each signal

LauncherSettings launcher_settings(const Options& options, char** argv) {
    LauncherSettings settings;
    if (base_name(argv[0]) == "oshrun") settings.name = "oshrun";
    settings.argv = argv;
    settings.verbose = options.verbose;
    settings.quiet = options.quiet;
    return settings;
}

TreeSettings tree_settings(const Options& options) {
    TreeSettings settings = TreeSettings::from_config(options.recovers);
    if (!options.agent.empty()) {
        settings.agent = words_of(options.agent);
        // `starling why`, which this process may run, uses the same agent for other hosts.
        setenv("STARLING_LAUNCHER_AGENT", options.agent.c_str(), 1);
    }
    if (!options.prefix.empty()) settings.program = options.prefix + "/bin/starlingd";
    return settings;
}

// The job client for mpiexec's own terminal, files and pipes.
class Terminal : public LocalClient {
  public:
    Terminal(EventLoop& loop, const Options& options, char** argv, bool over_hosts, ProfileFile& profile)
        : LocalClient(loop, launcher_settings(options, argv),
                      over_hosts ? std::optional(tree_settings(options)) : std::nullopt),
          options_(options),
          over_hosts_(over_hosts),
          profile_file_(profile),
          reader_(loop, [this](std::string data) { universe_.input(*this, std::move(data)); }) {
        style = options.style();
        profile_file_.use(loop);
        launcher_.output().on_reader_closed = [this] {
            print("standard output has no reader any more; ending the job\n");
            universe_.end_jobs(*this, 128 + SIGPIPE);
        };
        if (profile_file_.is_open()) universe_.write_profiles_of(*this);
        if (!over_hosts) return;
        // Processes on other hosts are not children of this process, so they do not inherit its environment and directory.
        environment = own_environment();
        char here[PATH_MAX];
        if (getcwd(here, sizeof here)) directory = here;
    }

    int run(const std::string& why) {
        if (options_.dry_run) {
            const PlacementPreview preview = universe_.preview(options_.spec(), hosts_of(options_.programs));
            return print_preview(preview, options_.programs);
        }
        if (!prepare()) {
            std::fprintf(stderr, "mpiexec: %s\n", failure_text().data());
            return 1;
        }
        if (const std::string problem = open_output_files(launcher_.output(), options_.output); !problem.empty()) {
            std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
            launcher_.shut_down();
            return kCannotStart;
        }
        detail(why);
        has_debugger_attached();
        lists_processes = is_being_debugged();
        loop_.on_turn = [this](bool interrupted) { on_turn(interrupted); };
        if (options_.timeout_seconds > 0) {
            loop_.after(std::chrono::seconds(options_.timeout_seconds), [this] {
                if (jobs_left > 0) universe_.time_out(*this, options_.timeout_seconds);
            });
        }
        if (over_hosts_) {
            if (isatty(2)) loop_.after(kSilence, [this] { report_start(); });
            universe_.add_hosts(hosts_of(options_.programs), true, [this](const std::string& problem) { on_hosts(problem); });
        } else {
            start();
        }
        return launcher_.run();
    }

    void input_read() override { reader_.next(); }
    bool write_profile(const std::string& lines) override { return profile_file_.write(lines); }
    void show_processes(ProcessTable processes, std::function<void()> done) override {
        add_to_debugger_table(std::move(processes));
        if (!is_being_debugged()) return done();
        show_to_debugger(std::move(done));
    }

    void finished(int code) override {
        if (timed_out) launcher_.output().lose_unread({});
        launcher_.output().when_written([this, code] {
            if (debugger_ > 0)
                result_ = code;
            else
                end(code);
        });
    }

  private:
    void detail(const std::string& sentence) {
        if (verbose) print(sentence);
    }

    // Reports on a terminal, every two seconds, which hosts a long start waits for.
    void report_start() {
        using HostState = UniverseHost::HostState;
        if (ending_ || hosts_are_up_) return;
        size_t up = 0, all = 0;
        std::string waiting;
        for (const UniverseHost& host : universe_.hosts()) {
            if (&host == &universe_.hosts().front()) continue;
            ++all;
            up += host.state == HostState::up || host.state == HostState::alias;
            if (host.state == HostState::starting && waiting.empty()) waiting = host.name;
        }
        if (!waiting.empty() && !quiet)
            print("starting: " + std::to_string(up) + " of " + number_of(all, "host") + " are up, waiting for " + waiting);
        loop_.after(kSilence, [this] { report_start(); });
    }

    void on_hosts(const std::string& problem) {
        hosts_are_up_ = true;
        if (ending_) return;
        if (!problem.empty()) { return fail_to_start(problem); }
        const auto up = [](const UniverseHost& host) { return host.state == UniverseHost::HostState::up; };
        const auto others = std::count_if(universe_.hosts().begin() + 1, universe_.hosts().end(), up);
        detail("daemons are up on " + number_of(static_cast<uint64_t>(others), "other host"));
        if (const std::string names = universe_.aliases(); !names.empty()) detail(names);
        start();
    }

    void fail_to_start(const std::string& reason) {
        std::fprintf(stderr, "mpiexec: %s\n", reason.c_str());
        end(kCannotStart);
    }

    void start() {
        universe_.submit(options_.spec(), *this, [this](const PlacedOutcome& outcome) {
            if (outcome.job == 0)
                return fail_to_start(outcome.cannot_run ? options_.with_start_hint(outcome.text, outcome.failed_program)
                                                        : outcome.text);
            profile_file_.keep();
            if (universe_.hosts().size() <= kListedHosts || has_been_asked_)
                universe_.list_processes(*this, is_being_debugged());
            if (!options_.debugged.empty()) return debug(outcome.job);
            // A single rank on this host has mpiexec's standard input itself. Otherwise mpiexec reads the input here and sends it.
            if (universe_.wants_input(*this)) reader_.next();
        });
    }

    /// Starts the debuggers of --debug. The job ends if that is impossible.
    void debug(job::JobId id) {
        const LocalJob* job = launcher_.find_job(id);
        std::vector<pid_t> processes;
        std::string problem;
        for (const uint32_t rank : options_.debugged) {
            if (job && job->has(rank))
                processes.push_back(job->at(rank).pid);
            else
                problem = "--debug=" + std::to_string(rank) + ": the job has no such rank on this host";
        }
        const pid_t child = problem.empty() ? start_debuggers(processes, problem) : -1;
        if (child < 0) {
            print(problem);
            return universe_.end_jobs(*this, 1);
        }
        debugger_ = child;
        launcher_.expect_helper(child, [this, id] {
            debugger_ = -1;
            continue_debugged(id);
            if (result_) end(*result_);
        });
    }

    /// Continues the ranks to which no debugger has attached, or which it has left stopped.
    void continue_debugged(job::JobId id) {
        const LocalJob* job = launcher_.find_job(id);
        for (const uint32_t rank : options_.debugged)
            if (job && job->has(rank) && job->at(rank).pid > 0) kill(job->at(rank).pid, SIGCONT);
    }

    /// Lists the processes for a debugger that has attached, or has stopped this process before the table was filled.
    void on_turn(bool interrupted) {
        const bool attached = has_debugger_attached();
        if (!attached && !interrupted) return;
        has_been_asked_ = true;
        universe_.list_processes(*this, is_being_debugged());
        if (attached && has_debugger_table()) show_to_debugger([] {});
    }

    /// Calls the debugger. It stops this process, which must not keep other hosts from stopping their ranks, nor appear dead to them.
    void show_to_debugger(std::function<void()> done) {
        announce_suspension([this, done = std::move(done)] {
            report_spawned();
            universe_.resume();
            done();
        });
    }

    void on_signal(int signal) override {
        if (signal == SIGINT && debugger_ > 0) return;  // the terminal's Ctrl-C is for the debugger
        if (signal == SIGTERM || signal == SIGHUP) end_debugger(signal);
        const bool insists = insistence_.grows(signal, ending_);
        // The daemons are ending the job already, and a repeated signal means that the user does not wait for them any longer.
        if (ending_ && insists) return loop_.stop(128 + signal);
        if (jobs_left == 0) {
            if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) end(128 + signal);
            return;
        }
        if (insists && over_hosts_) loop_.after(kLastMercy, [this, signal] { end(128 + signal); });
        LocalClient::on_signal(signal);
        if (signal == forwarded_signal) launcher_.output().lose_unread(std::chrono::seconds(config().signal_grace));
        if (signal == SIGCONT && universe_.wants_input(*this)) reader_.next();
    }

    /// Ends the debugger of --debug. gdb may still wait for an answer to a question after a first signal.
    void end_debugger(int signal) {
        if (debugger_ <= 0) return;
        kill(debugger_, signal);
        const auto again = [this, child = debugger_](int later) {
            if (debugger_ == child) kill(child, later);
        };
        loop_.after(kDebuggersTime, [again] { again(SIGTERM); });
        loop_.after(2 * kDebuggersTime, [again] { again(SIGKILL); });
    }

    void end(int code) {
        if (ending_) return;
        ending_ = true;
        reader_.stop();
        profile_file_.close();
        universe_.shut_down([this, code] { loop_.stop(code); });
    }

    const Options& options_;
    const bool over_hosts_;
    ProfileFile& profile_file_;
    InputReader reader_;
    bool ending_ = false;
    bool hosts_are_up_ = false;
    bool has_been_asked_ = false;  ///< true: a debugger has attached, or has stopped this process
    pid_t debugger_ = -1;          ///< debugger of --debug; -1: none runs
    std::optional<int> result_;    ///< exit code of the job, which ended before the debugger
    RepeatedSignal insistence_;
};

}  // namespace

int run_job(const Options& options, char** argv, const Choice& choice, ProfileFile& profile) {
    EventLoop loop;
    Terminal terminal(loop, options, argv, choice.way == LaunchMethod::agent && !options.dry_run, profile);
    return terminal.run(choice.why);
}

}  // namespace starling::launch
