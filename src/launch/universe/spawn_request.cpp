#include "launch/universe/spawn_request.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>

#include "base/config.h"
#include "base/error.h"

namespace starling::launch {

namespace {

bool parse_number(std::string_view& text, uint32_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

// Makes a path absolute, relative to the directory of the requesting process.
std::string absolute(const std::string& path, const std::string& from) {
    if (path.empty() || path[0] == '/' || from.empty()) return path;
    return path == "." ? from : from + "/" + path;
}

std::string all_absolute(std::string_view path, const std::string& from) {
    std::string out;
    while (true) {
        const size_t colon = path.find(':');
        out += absolute(std::string(path.substr(0, colon)), from);
        if (colon == std::string_view::npos) return out;
        out += ':';
        path.remove_prefix(colon + 1);
    }
}

std::string read_mapping(const std::string& value, Mapping& out) {
    const std::string unit = value.substr(0, value.find(':'));
    if (unit == "node") {
        out = Mapping::node;
    } else if (unit == "slot" || unit == "core") {
        out = unit == "slot" ? Mapping::slot : Mapping::core;
    } else {
        return "the info value map_by='" + value + "' is not slot, node or core";
    }
    return {};
}

std::string read_environment(std::string_view text, Program& out) {
    while (!text.empty()) {
        const size_t newline = text.find('\n');
        const std::string_view entry = text.substr(0, newline);
        const size_t equals = entry.find('=');
        if (equals == 0 || (equals == std::string_view::npos && !entry.empty())) {
            return "the info value env='" + std::string(entry) + "' is not NAME=VALUE";
        }
        if (!entry.empty()) out.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    }
    return {};
}

std::string read_errhandler(const std::string& value, Program& out) {
    constexpr char kVariable[] = "STARLING_INITIAL_ERRHANDLER";
    if (check_setting(kVariable, value.c_str()) != 0) {
        clear_failure();
        return "the info value mpi_initial_errhandler='" + value +
               "' is not mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return";
    }
    out.environment.emplace_back(kVariable, value);
    return {};
}

std::string apply_info(const std::string& key, const std::string& value, uint32_t maxprocs, const std::string& caller,
                       Program& out) {
    if (key == "wdir") {
        out.directory = absolute(value, caller);
    } else if (key == "path") {
        out.search_path = all_absolute(value, caller);
    } else if (key == "host" || key == "add-host" || key == "add_host") {
        return read_hosts(value, out.hosts);
    } else if (key == "hostfile" || key == "add-hostfile" || key == "add_hostfile") {
        return read_hostfile(absolute(value, caller), out.hosts);
    } else if (key == "map_by" || key == "map-by" || key == "mapby") {
        return read_mapping(value, out.mapping);
    } else if (key == "ppn" || key == "npernode" || key == "ppr") {
        std::string_view text = value;
        if (!parse_number(text, out.per_host) || !text.empty())
            return "the info value " + key + "='" + value + "' is not a number of processes per host";
    } else if (key == "env") {
        return read_environment(value, out);
    } else if (key == "mpi_initial_errhandler") {
        return read_errhandler(value, out);
    } else if (key == "soft" && !parse_soft(value, maxprocs, out.soft)) {
        return "the info value soft='" + value + "' is not a list of numbers or ranges a:b or a:b:c";
    }
    return {};  // The key is not one of the above: MPI requires that unknown keys are ignored.
}

// Returns an error if a host is not this machine. A universe of one host has no tree, so no other host can be added.
std::string all_here(const std::vector<HostSlots>& hosts) {
    for (const HostSlots& host : hosts) {
        if (!is_this_machine(host.name))
            return "host '" + host.name + "' is not this machine (" + host_name() +
                   "), but the job was started on this machine only; start it with mpiexec --host or --hostfile and all hosts "
                   "on which it may spawn";
    }
    return {};
}

}  // namespace

bool parse_soft(std::string_view text, uint32_t most, std::vector<uint32_t>& out) {
    constexpr size_t kEnough = 1 << 16;
    while (true) {
        while (text.starts_with(' ')) text.remove_prefix(1);
        uint32_t first = 0, last = 0, step = 1;
        if (!parse_number(text, first)) return false;
        last = first;
        if (text.starts_with(':')) {
            text.remove_prefix(1);
            if (!parse_number(text, last)) return false;
        }
        if (text.starts_with(':')) {
            text.remove_prefix(1);
            if (!parse_number(text, step) || step == 0) return false;
        }
        for (uint64_t n = first; n <= last && n <= most && out.size() < kEnough; n += step)
            out.push_back(static_cast<uint32_t>(n));
        while (text.starts_with(' ')) text.remove_prefix(1);
        if (text.empty()) break;
        if (text[0] != ',') return false;
        text.remove_prefix(1);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return true;
}

size_t requested_processes(const control::SpawnRequest& request) {
    uint64_t count = 0;
    for (const control::SpawnCommand& command : request.commands) count += command.maxprocs;
    return std::min<uint64_t>(count, control::kMaxProcesses);
}

static std::string caller_directory(const control::SpawnCommand& command) {
    const bool told =
        !command.info.empty() && command.info[0].first == control::kCallerDirectory && command.info[0].second.starts_with('/');
    if (told) return command.info[0].second;
    char here[PATH_MAX];
    return getcwd(here, sizeof here) ? here : "";
}

std::string job_of(const control::SpawnRequest& request, job::JobId parent, JobSpec& out, bool here_only) {
    if (request.commands.empty()) return "the spawn has no commands";
    uint64_t room = control::kMaxProcesses;
    for (const control::SpawnCommand& command : request.commands) {
        if (command.maxprocs > room) return "the spawn has more than a million processes";
        room -= command.maxprocs;
    }
    out.blob = request.blob;
    out.parent = parent;
    int32_t appnum = 0;
    for (const control::SpawnCommand& command : request.commands) {
        Program program;
        program.argv = command.argv;
        program.count = command.maxprocs;
        program.appnum = appnum++;
        if (command.argv.empty() || command.argv[0].empty()) return "the spawn has an empty command";
        const std::string caller = caller_directory(command);
        program.directory = caller;
        for (const auto& [key, value] : command.info) {
            if (std::string problem = apply_info(key, value, command.maxprocs, caller, program); !problem.empty())
                return problem;
        }
        if (here_only) {
            if (std::string problem = all_here(program.hosts); !problem.empty()) return problem;
        }
        out.programs.push_back(std::move(program));
    }
    return {};
}

}  // namespace starling::launch
