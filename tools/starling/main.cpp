// starling: inspects an installation and running jobs, and manages the user's daemon. One file per subcommand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/version.h"
#include "help.h"
#include "info.h"
#include "launch/client/daemon_command.h"
#include "profile/command.h"
#include "starling/crash_stack.h"
#include "starling/doctor/doctor.h"
#include "starling/python/python_env.h"
#include "starling/top/top.h"
#include "starling/why/why.h"
#include "usage.h"

int main(int argc, char** argv) {
    CLI::App app("Starling, an MPI runtime for jobs that grow and shrink while they run", "starling");
    app.set_version_flag("--version", "Starling " + starling::version_text());
    app.require_subcommand(1);
    int result = 0;

    starling::InfoOptions info;
    CLI::App* info_command = app.add_subcommand("info", "Show this installation: version, networks, functions and settings");
    info_command->add_flag("--all", info.all, "All of the following, but only the numbers of functions");
    info_command->add_flag("--variables", info.variables, "Variables with their values, sources and meaning");
    info_command->add_flag("--missing", info.missing, "MPI and OpenSHMEM functions that are not implemented");
    info_command->add_flag("--functions", info.functions, "All MPI functions");
    info_command->add_flag("--transports", info.transports, "Transports, and whether they are usable here");
    info_command->add_flag("--collectives", info.collectives, "The algorithm of each collective call");
    info_command->add_flag("--protocols", info.protocols, "The protocols for messages, and when each is chosen");
    info_command->add_flag("--counters", info.counters, "The counters of every process");
    info_command->add_flag("--json", info.json, "Everything, or the parts that are named, as JSON");
    info_command->callback([&] { result = starling::info(info); });

    starling::TopOptions top;
    CLI::App* top_command = app.add_subcommand("top", "Show the jobs that run on this machine, live");
    top_command->add_option("job", top.job, "Only jobs whose id begins with this, or whose command line contains it");
    top_command->add_option("--interval", top.interval, "Seconds between two updates")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    top_command->add_option("--sort", top.sort, "Order of a job's ranks: rank, waiting, messages, bytes, cpu or memory")
        ->check(CLI::IsMember({"rank", "waiting", "messages", "bytes", "cpu", "memory"}))
        ->capture_default_str();
    top_command->add_flag("--all-users", top.all_users, "Include jobs of all users, for root; their data may be forged");
    top_command->add_flag("--all-hosts", top.all_hosts, "Include the other hosts of the jobs on this host, through the agent");
    top_command->add_option("--host", top.hosts, "Additional hosts, separated by commas, through the agent")->delimiter(',');
    top_command->add_flag("--totals", top.totals, "Counts since the start instead of rates per second");
    top_command->add_flag("--once", top.once, "One update, after one interval");
    top_command->add_flag("--json", top.json, "One JSON object per update, on one line");
    top_command->callback([&] { result = starling::run_top(top); });

    starling::WhyOptions why;
    CLI::App* why_command =
        app.add_subcommand("why", "Explain what the processes of a running job wait for, and why the wait does not end");
    why_command->add_option("job", why.job, "Only jobs whose id begins with this, or whose command line contains it");
    why_command->add_option("--interval", why.interval, "Seconds between the two inspections of each process")
        ->check(CLI::Range(0.05, 60.0))
        ->capture_default_str();
    why_command->add_option("--launcher", why.launcher, "Only jobs of the mpiexec or daemon that has this process id");
    why_command->add_flag("--stacks", why.stacks, "Add the stacks, equal ones merged, and Python's if py-spy is installed");
    why_command->add_flag("--all-frames", why.all_frames, "Stacks with the frames and threads of the MPI library");
    why_command->add_flag("--all-users", why.all_users, "Include jobs of all users, for root; their data may be forged");
    why_command->add_flag("--here", why.here,
                          "This host only; by default the other hosts of the job are asked through the agent");
    why_command->add_option("--host", why.hosts, "Additional hosts, separated by commas, through the agent")->delimiter(',');
    why_command->add_option("--quiet-for", why.quiet, "Report only if no process has made progress for this number of seconds");
    why_command->add_flag("--ended-awaited", why.ended_awaited, "Report only if a process waits for one that has ended");
    why_command->add_flag("--raw", why.raw, "Output for starling on another host")->group("");
    why_command->add_flag("--json", why.json, "The same as one JSON object");
    why_command->callback([&] { result = starling::run_why(why); });

    starling::CrashOptions crash;
    CLI::App* stacks_command = app.add_subcommand("stacks", "Print the stack of a rank that crashes")->group("");
    stacks_command->add_option("pid", crash.pid)->required();
    stacks_command->add_option("--thread", crash.thread)->required();
    stacks_command->add_option("--signal", crash.signal);
    stacks_command->add_option("--rank", crash.rank);
    stacks_command->add_option("--from", crash.from);
    stacks_command->callback([&] { result = starling::print_crash(crash); });

    starling::add_profile_command(app, result);

    starling::DoctorOptions doctor;
    CLI::App* doctor_command =
        app.add_subcommand("doctor", "Show which MPI libraries a program would load, and whether Starling can replace them");
    doctor_command->add_option("file", doctor.files, "Programs, libraries, or folders with such files")->required();
    doctor_command->add_flag("--json", doctor.json, "The same as JSON");
    doctor_command->callback([&] { result = starling::run_doctor(doctor); });

    starling::PythonOptions python;
    CLI::App* python_command =
        app.add_subcommand("python-env", "Print or install what a Python that mpiexec does not start needs for mpi4py");
    python_command->add_option("python", python.python, "The interpreter, a path or a name in PATH")->capture_default_str();
    python_command->add_option("--shell", python.shell, "Whose commands to print: sh or fish")
        ->check(CLI::IsMember({"sh", "fish"}))
        ->capture_default_str();
    CLI::Option* install =
        python_command->add_flag("--install", python.install, "Write a .pth file, which this Python reads whenever it starts");
    python_command->add_flag("--remove", python.remove, "Remove that file")->excludes(install);
    python_command->callback([&] { result = starling::python_env(python); });

    CLI::App* daemon_command = app.add_subcommand("daemon", "The user's daemon: start, stop or status");
    daemon_command->prefix_command();
    daemon_command->footer(starling::launch::daemon_usage());
    daemon_command->callback([&] { result = starling::launch::daemon_command(daemon_command->remaining()); });

    std::string topic;
    bool tables = false;
    CLI::App* help_command = app.add_subcommand("help", "Show help on a topic, a command, a function or a variable");
    help_command->add_option("topic", topic, "Such as hosts, hang, MPI_Send or STARLING_WAIT; default: a list of topics");
    help_command->add_flag("--tables", tables, "All commands and options, as JSON")->group("");
    help_command->callback([&] { result = tables ? starling::print_tables(app) : starling::print_help(app, topic); });

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
