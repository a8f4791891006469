// starling: inspects an installation and running jobs, and manages the user's daemon. One file per subcommand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/version.h"
#include "help.h"
#include "info.h"
#include "launch/client/daemon_command.h"
#include "launch/common/nearest_name.h"
#include "launch/common/stack_limit.h"
#include "profile/command.h"
#include "starling/crash_stack.h"
#include "starling/doctor/doctor.h"
#include "starling/plans/plans.h"
#include "starling/python/python_env.h"
#include "starling/top/show.h"
#include "starling/top/top.h"
#include "starling/why/why.h"
#include "usage.h"

namespace starling {

namespace {

// The options that `top` and `why` share.
void add_job(CLI::App& command, std::string& job) {
    command.add_option("job", job, "Only jobs whose id begins with this, or whose command line contains it");
}
void add_all_users(CLI::App& command, bool& all_users) {
    command.add_flag("--all-users", all_users, "Include jobs of all users, for root; their data may be forged");
}
void add_hosts(CLI::App& command, std::vector<std::string>& hosts) {
    command.add_option("--host", hosts, "Additional hosts, separated by commas, through the agent")->delimiter(',');
}

void add_info(CLI::App& app, int& result) {
    const auto options = std::make_shared<InfoOptions>();
    CLI::App* command = app.add_subcommand("info", "Show this installation: version, networks, functions and settings");
    command->add_flag("--all", options->all, "All of the following, but only the numbers of functions");
    command->add_flag("--variables", options->variables, "Variables with their values, sources and meaning");
    command->add_flag("--missing", options->missing, "MPI and OpenSHMEM functions that are not implemented");
    command->add_flag("--functions", options->functions, "All MPI functions");
    command->add_flag("--transports", options->transports, "Transports, and whether they are usable here");
    command->add_flag("--collectives", options->collectives, "The algorithm of each collective call");
    command->add_flag("--protocols", options->protocols, "The protocols for messages, and when each is chosen");
    command->add_flag("--copies", options->copies,
                      "Measured copies between the cores of this machine, and what is chosen there");
    command->add_flag("--counters", options->counters, "The counters of every process");
    command->add_flag("--json", options->json, "Everything, or the parts that are named, as JSON");
    command->callback([options, &result] { result = info(*options); });
}

void add_top(CLI::App& app, int& result) {
    const std::vector<std::string> orders(std::begin(top::kOrderNames), std::end(top::kOrderNames));
    const auto options = std::make_shared<TopOptions>();
    CLI::App* command = app.add_subcommand("top", "Show the jobs that run on this machine, live");
    add_job(*command, options->job);
    command->add_option("--interval", options->interval, "Seconds between two updates")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    command->add_option("--sort", options->sort, "Order of a job's ranks: " + launch::listed({orders.begin(), orders.end()}))
        ->check(CLI::IsMember(orders))
        ->capture_default_str();
    add_all_users(*command, options->all_users);
    command->add_flag("--all-hosts", options->all_hosts, "Include the other hosts of the jobs on this host, through the agent");
    add_hosts(*command, options->hosts);
    command->add_flag("--totals", options->totals, "Counts since the start instead of rates per second");
    command->add_flag("--once", options->once, "One update, after one interval");
    command->add_flag("--json", options->json, "One JSON object per update, on one line");
    command->callback([options, &result] { result = run_top(*options); });
}

void add_why(CLI::App& app, int& result) {
    const auto options = std::make_shared<WhyOptions>();
    CLI::App* command =
        app.add_subcommand("why", "Explain what the processes of a running job wait for, and why the wait does not end");
    add_job(*command, options->job);
    command->add_option("--interval", options->interval, "Seconds between the two inspections of each process")
        ->check(CLI::Range(0.05, 60.0))
        ->capture_default_str();
    command->add_option("--launcher", options->launcher, "Only jobs of the mpiexec or daemon that has this process id");
    command->add_flag("--stacks", options->stacks, "Add the stacks, equal ones merged, and Python's if py-spy is installed");
    command->add_flag("--all-frames", options->all_frames, "Stacks with the frames and threads of the MPI library");
    add_all_users(*command, options->all_users);
    command->add_flag("--here", options->here,
                      "This host only; by default the other hosts of the job are asked through the agent");
    add_hosts(*command, options->hosts);
    command->add_option("--quiet-for", options->quiet,
                        "Report only if no process has made progress for this number of seconds");
    command->add_flag("--ended-awaited", options->ended_awaited, "Report only if a process waits for one that has ended");
    command->add_flag("--raw", options->raw, "Output for starling on another host")->group("");
    command->add_flag("--json", options->json, "The same as one JSON object");
    command->callback([options, &result] { result = run_why(*options); });
}

void add_stacks(CLI::App& app, int& result) {
    const auto options = std::make_shared<CrashOptions>();
    CLI::App* command = app.add_subcommand("stacks", "Print the stack of a rank that crashes")->group("");
    command->add_option("pid", options->pid)->required();
    command->add_option("--thread", options->thread)->required();
    command->add_option("--signal", options->signal);
    command->add_option("--rank", options->rank);
    command->add_option("--from", options->from);
    command->callback([options, &result] { result = print_crash(*options); });
}

void add_plans(CLI::App& app, int& result) {
    const auto options = std::make_shared<PlansOptions>();
    CLI::App* all = app.add_subcommand("plans", "Show or delete what is kept of applications' last runs (mpiexec --plan auto)");
    all->require_subcommand(1);
    CLI::App* list = all->add_subcommand("list", "One line for each application, the last run first");
    list->add_option("name", options->names, "Only these applications or entries");
    list->add_flag("--json", options->json, "The same as JSON");
    list->callback([options, &result] { result = list_plans(*options); });
    CLI::App* show = all->add_subcommand("show", "The hosts of the ranks, and their partners");
    show->add_option("name", options->names, "Applications or entries")->required();
    show->callback([options, &result] { result = show_plan(*options); });
    CLI::App* clear = all->add_subcommand("clear", "Delete all entries, or some");
    clear->add_option("name", options->names, "Only these applications or entries");
    clear->callback([options, &result] { result = clear_plans(*options); });
}

void add_doctor(CLI::App& app, int& result) {
    const auto options = std::make_shared<DoctorOptions>();
    CLI::App* command =
        app.add_subcommand("doctor", "Show which MPI libraries a program would load, and whether Starling can replace them");
    command->add_option("file", options->files, "Programs, libraries, or folders with such files")->required();
    command->add_flag("--json", options->json, "The same as JSON");
    command->callback([options, &result] { result = run_doctor(*options); });
}

void add_python_env(CLI::App& app, int& result) {
    const auto options = std::make_shared<PythonOptions>();
    CLI::App* command =
        app.add_subcommand("python-env", "Print or install what a Python that mpiexec does not start needs for mpi4py");
    command->add_option("python", options->python, "The interpreter, a path or a name in PATH")->capture_default_str();
    command->add_option("--shell", options->shell, "Whose commands to print: sh or fish")
        ->check(CLI::IsMember({"sh", "fish"}))
        ->capture_default_str();
    CLI::Option* install =
        command->add_flag("--install", options->install, "Write a .pth file, which this Python reads whenever it starts");
    command->add_flag("--remove", options->remove, "Remove that file")->excludes(install);
    command->callback([options, &result] { result = python_env(*options); });
}

void add_daemon(CLI::App& app, int& result) {
    CLI::App* command = app.add_subcommand("daemon", "The user's daemon: start, stop or status");
    command->prefix_command();
    command->footer(launch::daemon_usage());
    command->callback([command, &result] { result = launch::daemon_command(command->remaining()); });
}

void add_help(CLI::App& app, int& result) {
    struct HelpOptions {
        std::string topic;
        bool tables = false;
    };
    const auto options = std::make_shared<HelpOptions>();
    CLI::App* command = app.add_subcommand("help", "Show help on a topic, a command, a function or a variable");
    command->add_option("topic", options->topic, "Such as hosts, hang, MPI_Send or STARLING_WAIT; default: a list of topics");
    command->add_flag("--tables", options->tables, "All commands and options, as JSON")->group("");
    command->callback(
        [options, &app, &result] { result = options->tables ? print_tables(app) : print_help(app, options->topic); });
}

}  // namespace

}  // namespace starling

// Not inlined: its frame may be larger than a stack that main() refuses.
[[gnu::noinline]] static int run_command(int argc, char** argv) {
    CLI::App app("Starling, an MPI runtime for jobs that grow and shrink while they run", "starling");
    app.set_version_flag("--version", "Starling " + starling::version_text());
    app.require_subcommand(1);
    int result = 0;

    starling::add_info(app, result);
    starling::add_top(app, result);
    starling::add_why(app, result);
    starling::add_stacks(app, result);
    starling::add_profile_command(app, result);
    starling::add_plans(app, result);
    starling::add_doctor(app, result);
    starling::add_python_env(app, result);
    starling::add_daemon(app, result);
    starling::add_help(app, result);

    try {
        if (argc < 2)
            std::fputs(app.help().c_str(), stdout);
        else
            app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        result = starling::end_of_parsing(app, error);
    } catch (const std::exception& error) {  // thrown by fmt if the output cannot be written
        std::fprintf(stderr, "starling: %s\n", error.what());
        return 1;
    }
    return starling::end_of_output(result);
}

int main(int argc, char** argv) {
    if (const std::string problem = starling::launch::stack_problem(); !problem.empty()) {
        std::fprintf(stderr, "starling: %s\n", problem.c_str());
        return 1;
    }
    return run_command(argc, argv);
}
