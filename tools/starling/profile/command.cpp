#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "plan.h"
#include "reader.h"
#include "show.h"
#include "what_if.h"

namespace starling {

namespace {

using namespace analysis;

struct Options {
    std::vector<std::string> files;
    std::string output;
    ShowWish show;
    PlanWish plan;
};

/// All or nothing: what is there stays if the new one can't be written.
void write_file(const std::string& path, const std::string& text) {
    const std::string fresh = path + ".new";
    FILE* const file = std::fopen(fresh.c_str(), "we");
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = file && std::fclose(file) == 0;
    if (written && closed && std::rename(fresh.c_str(), path.c_str()) == 0) return;
    const std::string why = std::strerror(errno);
    if (file) std::remove(fresh.c_str());
    throw Refusal("cannot write " + path + ": " + why);
}

/// Runs it; a Refusal becomes a sentence and exit code 1.
int refusable(const std::function<void()>& work) {
    try {
        work();
        return 0;
    } catch (const Refusal& refusal) {
        fmt::print(stderr, "starling: {}\n", refusal.what());
        return 1;
    }
}

void run_show(const Options& options) { fmt::print("{}", show(read_profiles(options.files), options.show)); }

void run_plan(const Options& options) {
    const Run run = read_profiles(options.files);
    const Plan plan = make_plan(run, options.plan);
    const std::string path = options.output.empty() ? plan.application + ".plan" : options.output;
    write_file(path, to_text(plan));
    fmt::print("{}: {} of {} processes, {} kinds of occurrences, at most {} connections per process\n", path, plan.application,
               plan.size, plan.phases.size(), plan.max_direct);
    fmt::print("  mpiexec -n {} --plan {} {}\n", plan.size, path, fmt::join(run.command, " "));
}

}  // namespace

void add_profile_command(CLI::App& app, int& result) {
    const auto options = std::make_shared<Options>();
    CLI::App* all = app.add_subcommand("profile", "What runs did (mpiexec --profile), and plans made of it (mpiexec --plan)");
    all->require_subcommand(1);

    CLI::App* show_command =
        all->add_subcommand("show", "Who talked to whom, how, what was waited for, and what a plan would gain");
    show_command->add_option("file", options->files, "Profiles of runs of one application; several are merged")->required();
    show_command->add_option("--phase", options->show.phase, "This phase alone");
    show_command->add_option("--top", options->show.top, "Rows of each table")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    show_command->callback([options, &result] { result = refusable([&] { run_show(*options); }); });

    CLI::App* plan_command = all->add_subcommand("plan", "Make a plan for later runs");
    plan_command->add_option("file", options->files, "Profiles of runs of one application; several are merged")->required();
    plan_command->add_option("--output,-o", options->output, "Where to write it (APPLICATION.plan)");
    plan_command->add_option("--max-direct", options->plan.max_direct, "Connections per process; else the knee of the what-if")
        ->check(CLI::Range(1u, kMostDirect));
    plan_command->callback([options, &result] { result = refusable([&] { run_plan(*options); }); });
}

}  // namespace starling
