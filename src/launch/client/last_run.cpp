#include "launch/client/last_run.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/config.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

/// Returns the text with every number replaced by '#'.
std::string without_numbers(const std::string& text) {
    std::string out;
    for (const char c : text) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c));
        if (!digit)
            out += c;
        else if (out.empty() || out.back() != '#')
            out += '#';
    }
    return out;
}

/// Returns the program's path without links; its name if it is to be found in PATH.
std::string path_of(const std::string& command) {
    if (command.find('/') == std::string::npos) return command;
    const std::unique_ptr<char, void (*)(void*)> path(realpath(command.c_str(), nullptr), std::free);
    return path ? path.get() : command;
}

/// Returns the text as JSON can hold it: if it is not UTF-8, as arguments need not be, with all bytes above 127 written as escapes.
std::string as_utf8(const std::string& text) {
    try {
        (void)nlohmann::json(text).dump();
        return text;
    } catch (const nlohmann::json::exception&) {}
    std::string out;
    for (const char c : text) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += static_cast<unsigned char>(c) < 128 ? std::string(1, c) : escape;
    }
    return out;
}

std::string command_line(const std::vector<Program>& programs) {
    std::string all;
    for (const Program& program : programs) {
        if (!all.empty()) all += " :";
        for (const std::string& word : program.argv) all += (all.empty() ? "" : " ") + word;
    }
    return as_utf8(all);
}

/// Returns the value of STARLING_PLAN that the programs get: the last one on the command line, or mpiexec's own.
PlanSource plan_of(const Program& program) {
    const auto& all = program.environment;
    const auto found = std::find_if(all.rbegin(), all.rend(), [](const auto& one) { return one.first == "STARLING_PLAN"; });
    if (found == all.rend()) return config().plan;
    return found->second == "auto" ? PlanSource::automatic : PlanSource::demand;
}

/// Returns the index of each host of the last run in the program's hosts; empty if one is missing there.
std::vector<uint32_t> indexes_of(const std::vector<std::string>& names, const std::vector<HostSlots>& hosts) {
    std::vector<uint32_t> out;
    for (const std::string& name : names) {
        const auto found =
            std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& host) { return same_host(host.name, name); });
        if (found == hosts.end()) return {};
        out.push_back(static_cast<uint32_t>(found - hosts.begin()));
    }
    return out;
}

}  // namespace

std::string run_key(const std::vector<Program>& programs) {
    std::string key;
    for (const Program& program : programs) {
        key += path_of(program.argv[0]);
        for (size_t i = 1; i < program.argv.size(); ++i) key += '\n' + without_numbers(program.argv[i]);
        key += "\n-n " + std::to_string(program.count) + " -ppn " + std::to_string(program.per_host) + " map " +
               std::to_string(static_cast<uint32_t>(program.mapping));
        for (const HostSlots& host : program.hosts) key += '\n' + host.name + ':' + std::to_string(host.slots);
        key += "\n:\n";
    }
    return as_utf8(key);
}

void LastRun::remark(const std::string& sentence) const {
    if (options_.verbose) std::fprintf(stderr, "mpiexec: %s\n", sentence.c_str());
}

void LastRun::apply() {
    std::vector<Program>& programs = options_.programs;
    is_wanted_ =
        !programs.empty() && !options_.plan && std::all_of(programs.begin(), programs.end(), [](const Program& program) {
            return plan_of(program) == PlanSource::automatic && !program.uncounted;
        });
    if (!is_wanted_) return;
    for (Program& program : programs) program.environment.emplace_back("STARLING_PLAN", "auto");
    key_ = run_key(programs);
    command_ = command_line(programs);
    name_ = entry_name(base_name(programs[0].argv[0]), key_);
    last_.plan.application = as_utf8(std::string(base_name(programs[0].argv[0])));
    last_.key = key_;
    read();
    if (last_.plan.phases.empty()) return;
    place();
    if (!last_.plan.phases[0].peers.empty()) {
        for (Program& program : programs) program.environment.emplace_back("STARLING_PLAN", "cached");
        options_.plan = std::make_shared<const Plan>(last_.plan);
    }
}

void LastRun::read() {
    if (std::string problem = cache_.open(false); !problem.empty()) return remark("no last run is known: " + problem);
    const std::optional<std::string> text = cache_.read(name_);
    if (!text) return remark("no last run of this application is known in " + cache_.path());
    CachedRun run;
    const std::string wrong = parse_cached_run(*text, run);
    uint32_t size = 0;
    for (const Program& program : options_.programs) size += program.count;
    const bool fits = wrong.empty() && run.key == key_ && run.plan.is_for(as_utf8(options_.programs[0].argv[0]), size);
    if (!wrong.empty() && !options_.quiet)
        std::fprintf(stderr, "mpiexec: the plan %s/%s is damaged and is ignored: %s\n", cache_.path().c_str(), name_.c_str(),
                     wrong.c_str());
    if (!fits) return;
    // Times of another command, such as one with more steps, can't be compared.
    if (run.command != command_) run.in_order_seconds = run.placed_seconds = 0;
    last_ = std::move(run);
}

// Uses the last run's placement, unless the user places the ranks or another mapping is asked for.
void LastRun::place() {
    Program& program = options_.programs[0];
    const bool may_move = options_.programs.size() == 1 && program.host_of_process.empty() &&
                          (program.mapping == Mapping::slot || program.mapping == Mapping::core);
    if (!may_move || !last_.is_placed()) return;
    const std::vector<uint32_t> index = indexes_of(last_.hosts, program.hosts);
    if (index.empty()) return remark("the last run's hosts are not among those of this run, so the ranks stay in order");
    for (const uint32_t host : last_.host_of_rank) program.host_of_process.push_back(index[host]);
    placed_ = true;
    remark("the ranks are placed by the traffic of the last run (STARLING_PLAN=auto)");
}

// Returns the names that the user gave to the hosts of this run. The record has the hosts' own names, and the user may have given addresses
// or aliases, which the next run must find in its list of hosts.
std::vector<std::string> LastRun::users_names() const {
    const Program& program = options_.programs[0];
    const std::vector<HostSlots>& listed = program.hosts;
    const std::vector<uint32_t>& host_of_rank = record_.host_of_rank();
    std::vector<std::string> names = record_.hosts();
    if (options_.programs.size() != 1) return names;
    std::vector<uint32_t> index(names.size(), 0), ranks(names.size(), 0);
    std::iota(index.begin(), index.end(), 0);  // in order, the first hosts of the list have the ranks
    for (uint32_t rank = 0; rank < host_of_rank.size(); ++rank) {
        ++ranks[host_of_rank[rank]];
        if (rank < program.host_of_process.size()) index[host_of_rank[rank]] = program.host_of_process[rank];
    }
    for (size_t i = 0; i < index.size(); ++i)
        if (index[i] >= listed.size() || (listed[index[i]].slots > 0 && ranks[i] > listed[index[i]].slots)) return names;
    if (program.host_of_process.empty() && !indexes_of(names, listed).empty()) return names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = listed[index[i]].name;
    return names;
}

void LastRun::keep(int exit_code) {
    if (!record() || exit_code != 0 || !record_.is_complete()) return;
    last_.command = command_;
    record_.rename_hosts(users_names());
    const CachedRun next = next_run(record_, std::move(last_), placed_);
    std::string problem;
    if (!cache_.is_open()) problem = cache_.open(true);
    if (problem.empty()) problem = cache_.write(name_, to_text(next));
    if (!problem.empty()) remark("the traffic of this run is not kept: " + problem);
}

}  // namespace starling::launch
