// The command line of `simulate --program`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "program.h"

namespace starling::simulation {

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
    std::fprintf(stderr, "simulate: %s\n", sentence.c_str());
    std::exit(2);
}

/// Returns the file of a program; refuses a name that has none.
std::string file_of(const std::string& program) {
    namespace fs = std::filesystem;
    if (const std::string found = find_program(program); !found.empty()) return found;
    const fs::path folder = SIMULATED_PROGRAMS;
    std::string names;
    if (fs::exists(folder))
        for (const auto& one : fs::directory_iterator(folder))
            names += (names.empty() ? "" : ", ") + one.path().filename().string();
    refuse("no program is named " + program + " in " + folder.string() + ", which has: " + names);
}

void read_environment(const std::vector<std::string>& assignments, ProgramRun& run) {
    for (const std::string& one : assignments) {
        const size_t equals = one.find('=');
        if (equals == std::string::npos || equals == 0) refuse("-x " + one + " is not NAME=VALUE");
        run.environment.emplace_back(one.substr(0, equals), one.substr(equals + 1));
    }
}

uint32_t hosts_for(uint32_t ranks, uint32_t hosts, uint32_t per_host) {
    if (per_host != 0) return (ranks + per_host - 1) / per_host;
    if (hosts > ranks) refuse("--hosts " + std::to_string(hosts) + " is more than the " + std::to_string(ranks) + " ranks");
    return hosts != 0 ? hosts : ranks;
}

}  // namespace

std::string find_program(const std::string& name) {
    namespace fs = std::filesystem;
    if (name.find('/') != std::string::npos) return fs::absolute(name);
    const fs::path file = fs::path(SIMULATED_PROGRAMS) / name;
    return fs::exists(file) ? file.string() : std::string();
}

ProgramRun read_program_run(int count, char** arguments) {
    ProgramRun run;
    run.library = STARLING_LIBRARY;
    uint32_t hosts = 0, per_host = 0;
    std::vector<std::string> assignments;
    CLI::App app("Runs an MPI program on a simulated machine, and predicts its times", "simulate");
    app.add_option("--library", run.library, "File of the library")->type_name("FILE");
    app.add_option("--program", run.program, "Name of a program that was built for the simulator, or a file")->required();
    app.add_option("-n", run.ranks, "Number of ranks")->check(CLI::Range(1, 4096));
    auto* const by_hosts =
        app.add_option("--hosts", hosts, "Number of hosts; default: one per rank")->check(CLI::Range(1, 4096));
    app.add_option("--per-host", per_host, "Ranks per host")->check(CLI::Range(1, 4096))->excludes(by_hosts);
    app.add_option("--costs", run.costs, "Cost file (tests/simulation/costs)")->required()->type_name("FILE");
    app.add_option("--plan", run.plan, "Plan for the job, as for mpiexec --plan")->type_name("FILE");
    app.add_option("--report", run.report, "Write the results to this file, as JSON")->type_name("FILE");
    app.add_option("-x", assignments, "Environment of the ranks")->type_name("NAME=VALUE")->allow_extra_args(false);
    app.add_option("--seed", run.seed, "Seed of the random numbers that the library draws");
    app.add_option("--limit", run.limit_s, "Simulated seconds after which the run fails");
    app.add_flag("--trace", run.trace, "Print every event");
    app.add_option("arguments", run.arguments, "Arguments of the program, after --");
    try {
        app.parse(count, arguments);
    } catch (const CLI::ParseError& error) { std::exit(app.exit(error) == 0 ? 0 : 2); }
    run.program = file_of(run.program);
    read_environment(assignments, run);
    run.hosts = hosts_for(run.ranks, hosts, per_host);
    return run;
}

}  // namespace starling::simulation
