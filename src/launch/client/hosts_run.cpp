#include "launch/client/hosts_run.h"

#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "launch/process/input.h"
#include "launch/process/output.h"
#include "launch/process/process_environment.h"
#include "launch/universe/universe.h"

namespace starling::launch {

namespace {

constexpr int kCannotStart = 127;

LauncherSettings launcher_settings(const Options& options, char** argv) {
    LauncherSettings settings;
    settings.argv = argv;
    settings.verbose = options.verbose;
    settings.quiet = options.quiet;
    return settings;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (true) {
        const size_t begin = text.find_first_not_of(" \t");
        if (begin == std::string_view::npos) return words;
        text.remove_prefix(begin);
        words.emplace_back(text.substr(0, text.find_first_of(" \t")));
        text.remove_prefix(words.back().size());
    }
}

TreeSettings tree_settings(const Options& options) {
    TreeSettings settings = TreeSettings::from_config();
    if (!options.agent.empty()) {
        settings.agent = words_of(options.agent);
        // `starling why`, which this process may call, reaches other hosts the same way.
        setenv("STARLING_LAUNCHER_AGENT", options.agent.c_str(), 1);
    }
    if (!options.prefix.empty()) settings.program = options.prefix + "/bin/starlingd";
    return settings;
}

// mpiexec's own terminal, files and pipes.
class Terminal : public Patron {
  public:
    Terminal(EventLoop& loop, const Options& options, char** argv)
        : options_(options),
          loop_(loop),
          launcher_(loop, launcher_settings(options, argv)),
          universe_(loop, launcher_, tree_settings(options)),
          reader_(loop, [this](std::string data) { universe_.input(*this, std::move(data)); }) {
        style.tag_output = options.tag_output;
        style.binding = options.binding;
        style.report_bindings = options.report_bindings;
        verbose = options.verbose;
        quiet = options.quiet;
        environment = own_environment();
        char here[PATH_MAX];
        if (getcwd(here, sizeof here)) directory = here;
        has_own_host = true;
    }

    int run(const std::string& why) {
        if (!launcher_.prepare()) {
            std::fprintf(stderr, "mpiexec: %s\n", failure_text().data());
            return 1;
        }
        detail(why);
        launcher_.on_signal = [this](int signal) { return on_signal(signal); };
        universe_.on_say = [this](const std::string& sentence) { say(sentence); };
        universe_.add_hosts(hosts_of(options_.programs), true, [this](const std::string& problem) { start(problem); });
        if (options_.timeout_seconds > 0) {
            loop_.after(std::chrono::seconds(options_.timeout_seconds), [this] {
                if (jobs_left > 0) universe_.time_out(*this, options_.timeout_seconds);
            });
        }
        return launcher_.run();
    }

    void say(const std::string& sentence) override { launcher_.say("%s", sentence.c_str()); }

    void output(int target, std::string_view lines, std::function<void()> written) override {
        launcher_.output().write_lines(target, lines, std::move(written));
    }

    void input_taken() override { reader_.next(); }

    void finished(int code) override {
        launcher_.output().when_written([this, code] { end(code); });
    }

  private:
    void detail(const std::string& sentence) {
        if (verbose) say(sentence);
    }

    void start(const std::string& problem) {
        if (ending_) return;
        if (!problem.empty()) {
            std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
            return end(kCannotStart);
        }
        detail("daemons are up on " + std::to_string(universe_.hosts().size() - 1) + " other hosts");
        JobSpec spec;
        spec.programs = options_.programs;
        spec.forward_input = true;
        spec.recovers = options_.recovers;
        spec.universe_size = options_.universe_size;
        universe_.submit(spec, *this, [this](const PlacedOutcome& outcome) {
            if (outcome.job == 0) {
                std::fprintf(stderr, "mpiexec: %s\n", outcome.text.c_str());
                return end(kCannotStart);
            }
            // On this host rank 0 has it as it is; elsewhere it is read here and sent.
            if (!universe_.reads_here(*this)) reader_.next();
        });
    }

    bool on_signal(int signal) {
        if (jobs_left == 0) {
            if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) end(128 + signal);
            return true;
        }
        if ((signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) && exit_code == 0)
            exit_code = 128 + signal;
        universe_.signal(*this, signal);
        if (signal == SIGTSTP) kill(getpid(), SIGSTOP);
        if (signal == SIGCONT && !universe_.reads_here(*this)) reader_.next();
        return true;
    }

    void end(int code) {
        if (ending_) return;
        ending_ = true;
        reader_.stop();
        universe_.shut_down([this, code] { loop_.stop(code); });
    }

    const Options& options_;
    EventLoop& loop_;
    Launcher launcher_;
    Universe universe_;
    InputReader reader_;
    bool ending_ = false;
};

}  // namespace

std::vector<HostSlots> hosts_of(const std::vector<Program>& programs) {
    std::vector<HostSlots> all;
    for (const Program& program : programs) {
        for (const HostSlots& host : program.hosts) {
            bool known = false;
            for (HostSlots& other : all) {
                if (!same_host(other.name, host.name)) continue;
                other.slots = std::max(other.slots, host.slots);
                known = true;
            }
            if (!known) all.push_back(host);
        }
    }
    return all;
}

int run_over_hosts(const Options& options, char** argv, const std::string& why) {
    EventLoop loop;
    Terminal terminal(loop, options, argv);
    return terminal.run(why);
}

}  // namespace starling::launch
