#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "diff.h"
#include "launch/common/hosts.h"
#include "page.h"
#include "plan.h"
#include "reader.h"
#include "report.h"
#include "show.h"
#include "table.h"
#include "what_if.h"

namespace starling {

namespace {

using namespace analysis;

constexpr uint32_t kRowsShown = 10;  ///< rows of a table unless the user sets --top

struct Options {
    std::vector<std::string> files;
    std::string output;
    std::string html;
    ReportWish show;
    bool json = false;
    std::optional<uint32_t> top;  ///< maximum number of rows of each table
    PlanWish plan;
    std::string hosts, hostfile;
};

std::vector<HostRoom> hosts_of(const Options& options) {
    std::vector<launch::HostSlots> named;
    std::string problem;
    if (!options.hosts.empty()) problem = launch::read_hosts(options.hosts, named);
    if (problem.empty() && !options.hostfile.empty()) problem = launch::read_hostfile(options.hostfile, named);
    if (!problem.empty()) throw Refusal(problem);
    std::vector<HostRoom> rooms;
    for (const launch::HostSlots& host : named) rooms.push_back({host.name, host.slots});
    return rooms;
}

/// Writes a file atomically: an existing file stays if the new one can't be written.
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

/// Runs `work`; if it throws a Refusal, prints its sentence and returns exit code 1.
int refusable(const std::function<void()>& work) {
    try {
        work();
        return 0;
    } catch (const Refusal& refusal) {
        fmt::print(stderr, "starling: {}\n", without_controls(refusal.what()));
        return 1;
    }
}

void run_show(const Options& options) {
    const Run run = read_profiles(options.files);
    ReportWish wish = options.show;
    if (options.json) {
        wish.rows = wish.ranks = options.top.value_or(wish.rows);
        return fmt::print("{}\n", report(run, wish).dump(1, ' ', false, Data::error_handler_t::replace));
    }
    if (!options.html.empty()) {
        write_file(options.html, page(run));
        return fmt::print("{}: open it in a browser; it needs no other files\n", options.html);
    }
    wish.rows = wish.ranks = options.top.value_or(kRowsShown);
    wish.timeline = false;
    fmt::print("{}", show(report(run, wish)));
}

void run_plan(const Options& options) {
    const Run run = read_profiles(options.files);
    PlanWish wish = options.plan;
    wish.hosts = hosts_of(options);
    const Plan plan = make_plan(run, wish);
    const std::string path = options.output.empty() ? plan.application + ".plan" : options.output;
    write_file(path, to_text(plan));
    fmt::print("{}: {} of {} processes, {} {}, at most {} connections per process\n", path, plan.application, plan.size,
               plan.phases.size(), plan.phases.size() == 1 ? "pattern of partners" : "patterns of partners", plan.max_direct);
    if (!plan.structure.empty())
        fmt::print("  scaled from {} processes, whose neighborhoods are a {}\n", run.jobs[0].size, plan.structure);
    for (const PlannedCollective& one : plan.collectives)
        fmt::print("  {} {} of {} processes: {} instead of {}, {} a call instead of {}\n", one.kind, one.size, one.processes,
                   one.algorithm, one.instead_of, short_time(one.after), short_time(one.before));
    std::string ranks;
    if (!plan.host_of_rank.empty()) {
        ranks = path + ".ranks";
        write_file(ranks, rank_file(plan.host_of_rank, plan.rooms));
        fmt::print("{}: {} between hosts instead of {} with ranks in order ({} less)\n", ranks, short_bytes(plan.bytes_placed),
                   short_bytes(plan.bytes_in_order), percent(plan.bytes_in_order - plan.bytes_placed, plan.bytes_in_order));
    }
    if (ranks.empty() && plan.rooms.size() > 1)
        fmt::print("  ranks stay in order: no placement found has fewer than {} between hosts\n",
                   short_bytes(plan.bytes_in_order));
    fmt::print("  mpiexec -n {} --plan {} {}{}\n", plan.size, path, ranks.empty() ? "" : "--rankfile " + ranks + " ",
               fmt::join(run.command, " "));
}

void run_diff(const Options& options) {
    fmt::print("{}",
               diff(read_profiles({options.files[0]}), read_profiles({options.files[1]}), options.top.value_or(kRowsShown)));
}

}  // namespace

void add_profile_command(CLI::App& app, int& result) {
    const auto options = std::make_shared<Options>();
    CLI::App* all = app.add_subcommand("profile", "Analyze runs (mpiexec --profile), and plan later ones (mpiexec --plan)");
    all->require_subcommand(1);

    CLI::App* show_command =
        all->add_subcommand("show", "Where the time goes, traffic between processes, and the gain of a plan");
    show_command->add_option("file", options->files, "Profiles of runs of one application; several are merged")->required();
    CLI::Option* const html =
        show_command->add_option("--html", options->html, "Write everything as an HTML page for a browser instead");
    show_command->add_flag("--json", options->json, "Print all data as JSON")->excludes(html);
    show_command->add_option("--phase", options->show.phase, "This phase alone")->excludes(html);
    show_command->add_option("--top", options->top, "Rows of each table (10; --json prints all)")
        ->check(CLI::Range(1, 1000000));
    show_command->callback([options, &result] { result = refusable([&] { run_show(*options); }); });

    CLI::App* plan_command = all->add_subcommand("plan", "Make a plan for later runs");
    plan_command->add_option("file", options->files, "Profiles of runs of one application; several are merged")->required();
    plan_command->add_option("--output,-o", options->output, "File to write (APPLICATION.plan)");
    plan_command
        ->add_option("--max-direct", options->plan.max_direct,
                     "Connections per process; default: the knee of the what-if curve")
        ->check(CLI::Range(1u, kMostDirect));
    plan_command
        ->add_option("--size", options->plan.size, "Plan for this number of processes, from the structure of the neighborhoods")
        ->check(CLI::Range(2, 1000000));
    plan_command->add_option("--host,-H", options->hosts, "Hosts to place ranks on, as for mpiexec: NAME[:SLOTS],…");
    plan_command->add_option("--hostfile", options->hostfile,
                             "The same from a file; without both, the hosts of the recorded run");
    plan_command->callback([options, &result] { result = refusable([&] { run_plan(*options); }); });

    CLI::App* diff_command = all->add_subcommand("diff", "Differences of another run, the largest first");
    diff_command->add_option("file", options->files, "The profile before, and the one after")->required()->expected(2);
    diff_command->add_option("--top", options->top, "Number of changes to print (10)")->check(CLI::Range(1, 1000000));
    diff_command->callback([options, &result] { result = refusable([&] { run_diff(*options); }); });
}

}  // namespace starling
