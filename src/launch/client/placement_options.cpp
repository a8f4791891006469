#include "launch/client/placement_options.h"

#include <sched.h>

#include <algorithm>

#include "control/control_protocol.h"
#include "launch/common/text.h"
#include "launch/process/binding.h"

namespace starling::launch {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out;
    while (true) {
        const size_t end = text.find(separator);
        out.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return out;
        text.remove_prefix(end + 1);
    }
}

bool read_count(std::string_view text, uint32_t most, uint32_t& out) {
    return read_number(text, out) && out > 0 && out <= most;
}

// Reads MPICH's list of a rank's processors in turn: "0+2,1+4,3".
std::string read_user_list(const std::string& value, std::string_view list, ProcessorPlacement& out) {
    for (const std::string& one : split(list, ',')) {
        std::string cpus = one;
        std::replace(cpus.begin(), cpus.end(), '+', ',');
        if (!parse_cpus(cpus, out.lists.emplace_back()))
            return "'--bind-to " + value + "' is not of the form user:0+2,1+3, the processors of each process in turn";
    }
    return {};
}

bool is_harmless_qualifier(const std::string& word) {
    return word == "overload-allowed" || word == "no-overload" || word == "if-supported" || word == "report";
}

std::string read_modifier(const std::string& value, const std::string& modifier, PlacementOptions& out) {
    const std::string word = lowercase(modifier);
    if (word.starts_with("pe=")) {
        if (read_count(word.substr(3), CPU_SETSIZE, out.processors.elements)) return {};
        return "'--map-by " + value + "': PE=N is the number of processors of each process, 1 to " +
               std::to_string(CPU_SETSIZE);
    }
    if (word == "hwtcpus") {
        out.processors.counts_hwthreads = true;
    } else if (word == "corecpus") {
        out.processors.counts_hwthreads = false;
    } else if (word == "nolocal") {
        out.nolocal = true;
    } else if (word == "span") {
        out.notes.push_back("SPAN in '--map-by " + value + "' is ignored: each host is filled before the next one");
    } else if (word == "oversubscribe" || word == "nooversubscribe" || word == "inherit" || word == "noinherit" ||
               word == "ordered") {
        out.notes.push_back(modifier + " in '--map-by " + value + "' is not needed: -n alone sets the number of processes");
    } else if (!word.empty()) {
        return "'--map-by " + value + "': '" + modifier +
               "' is not a modifier; valid are PE=N, HWTCPUS, CORECPUS, NOLOCAL, SPAN, " + "OVERSUBSCRIBE and NOOVERSUBSCRIBE";
    }
    return {};
}

// Reads ppr:N:part. A number for a part of hosts becomes one for each host, by the parts of this host.
std::string read_per_part(const std::string& value, const std::vector<std::string>& words, Program& program,
                          PlacementOptions& out) {
    uint32_t number = 0;
    const ProcessorPart part = words.size() >= 3 ? part_named(lowercase(words[2])) : ProcessorPart::unset;
    const bool slots = words.size() >= 3 && lowercase(words[2]) == "slot";
    if (words.size() < 3 || !read_count(words[1], control::kMaxProcesses, number) || (part == ProcessorPart::unset && !slots))
        return "'--map-by " + value +
               "' is not of the form ppr:N:part, with node, package, numa, l3cache, core or hwthread as part";
    if (part == ProcessorPart::machine || slots) {
        program.per_host = number;
        return {};
    }
    ProcessorMap machine;
    if (std::string problem = load_processors(machine); !problem.empty()) return problem;
    out.processors.map = part;
    out.processors.per_part = number;
    program.per_host = std::min(number * machine.count_of(part), control::kMaxProcesses);
    return {};
}

std::string read_mapped_part(const std::string& value, const std::string& unit, Program& program, PlacementOptions& out) {
    const ProcessorPart part = part_named(unit);
    if (unit == "seq") {
        out.sequential = true;
    } else if (unit == "node" || unit == "board") {
        program.mapping = Mapping::node;
    } else if (unit == "core") {
        program.mapping = Mapping::core;
    } else if (part == ProcessorPart::machine) {
        program.mapping = Mapping::slot;
    } else if (part == ProcessorPart::hwthread) {
        program.mapping = Mapping::slot;
        out.processors.counts_hwthreads = true;
    } else if (part != ProcessorPart::unset) {
        out.processors.map = part;
    } else if (unit == "slot") {
        program.mapping = Mapping::slot;
    } else if (unit.starts_with("rankfile") || unit.starts_with("pe-list")) {
        return "'--map-by " + value + "': use --rankfile FILE for the hosts of ranks, and --cpu-list for processors";
    } else if (!unit.empty()) {
        return "'--map-by " + value +
               "' is not valid; use slot, node, core, hwthread, l2cache, l3cache, numa, package or ppr:N:part";
    }
    return {};
}

}  // namespace

std::string read_bind_to(const std::string& value, PlacementOptions& out) {
    std::vector<std::string> words = split(value, ':');
    const std::string unit = lowercase(words[0]);
    ProcessorPlacement& processors = out.processors;
    processors.bind = ProcessorPart::unset;
    processors.bind_count = 1;
    processors.lists.clear();
    if (unit == "user" && words.size() == 2) {
        out.binding = Binding::none;
        return read_user_list(value, words[1], processors);
    }
    for (size_t i = 1; i < words.size(); ++i) {
        const std::string word = lowercase(words[i]);
        if (is_harmless_qualifier(word) || (unit == "cpu-list" && word == "ordered")) continue;
        if (!read_count(word, CPU_SETSIZE, processors.bind_count))
            return "'--bind-to " + value + "': '" + words[i] +
                   "' is neither a number of parts nor overload-allowed or if-supported";
    }
    if (unit == "auto") {
        out.binding = Binding::automatic;
        return {};
    }
    out.binding = Binding::none;
    if (unit == "none") return {};
    const ProcessorPart part = unit == "rr" ? ProcessorPart::hwthread : part_named(unit);
    if (unit == "cpu-list") {
        const bool ordered = words.size() > 1;
        processors.bind = ordered ? ProcessorPart::hwthread : ProcessorPart::machine;
        return {};
    }
    if (part == ProcessorPart::unset) {
        return "'--bind-to " + value +
               "' is not valid; use auto, none, hwthread, core, l1cache, l2cache, l3cache, numa, package, " +
               "machine (each with :N for N of them), cpu-list or user:0,1+2";
    }
    out.binding = part == ProcessorPart::core ? Binding::core : Binding::none;
    processors.bind = part;
    return {};
}

std::string read_map_by(const std::string& value, Program& program, PlacementOptions& out) {
    const std::vector<std::string> words = split(value, ':');
    const std::string unit = lowercase(words[0]);
    size_t next = 1;
    std::string problem;
    if (unit == "ppr") {
        problem = read_per_part(value, words, program, out);
        next = 3;
    } else {
        problem = read_mapped_part(value, unit, program, out);
    }
    for (; next < words.size() && problem.empty(); ++next)
        for (const std::string& modifier : split(words[next], ','))
            if (problem.empty()) problem = read_modifier(value, modifier, out);
    return problem;
}

std::string read_rank_by(const std::string& value, PlacementOptions& out) {
    const std::string unit = lowercase(split(value, ':')[0]);
    const ProcessorPart part = part_named(unit);
    out.processors.rank = ProcessorPart::unset;
    out.processors.rank_fills = unit == "fill";
    if (unit == "node" || unit == "span") {
        out.ranking = HostRanking::node;
    } else if (unit == "slot" || unit == "fill") {
        out.ranking = HostRanking::slot;
    } else if (part != ProcessorPart::unset && part != ProcessorPart::machine) {
        out.ranking = HostRanking::slot;
        out.processors.rank = part;
    } else {
        return "'--rank-by " + value + "' is not valid; use slot, node, fill, hwthread, core, l3cache, numa or package";
    }
    return {};
}

std::string read_cpu_list(const std::string& option, const std::string& value, PlacementOptions& out) {
    out.processors.cpus.clear();
    if (parse_cpus(value, out.processors.cpus)) return {};
    return "'" + option + " " + value + "' is not a list of processors such as 0-3,8";
}

std::string finish_placement(PlacementOptions& placement, std::vector<Program>& programs) {
    ProcessorPlacement& processors = placement.processors;
    const bool several =
        std::any_of(programs.begin(), programs.end(), [](const Program& program) { return program.hosts.size() > 1; });
    if (placement.sequential && several)
        return "'--map-by seq': name the host of each rank with --rankfile FILE, whose lines are 'rank 0=HOST'";
    for (Program& program : programs) {
        if (placement.ranking == HostRanking::slot && program.mapping == Mapping::node)
            program.mapping = Mapping::node_ranked_by_slot;
        else if (placement.ranking == HostRanking::node && program.mapping != Mapping::node)
            program.mapping = Mapping::slot_ranked_by_node;
    }
    const bool placed = processors.elements > 0 || processors.map != ProcessorPart::unset || !processors.cpus.empty() ||
                        !processors.lists.empty();
    const bool plain = !placed && processors.rank == ProcessorPart::unset && !processors.rank_fills;
    // Without a binding, and with the plain one to a core, the launchers need no request.
    const bool unbound =
        placement.binding == Binding::none && processors.bind == ProcessorPart::unset && processors.lists.empty();
    if (unbound && (processors.elements > 0 || !processors.cpus.empty()))
        return "--bind-to none contradicts --map-by ...:PE=N and --cpu-list, which bind processes; leave out one of them";
    if (unbound || (placement.binding == Binding::automatic && !placed)) return {};
    if (placement.binding == Binding::core && plain && processors.bind_count == 1 && !processors.counts_hwthreads) return {};
    if (placement.binding == Binding::automatic) processors.bind = ProcessorPart::unset;
    placement.binding = Binding::none;
    for (Program& program : programs) program.environment.emplace_back(kProcessorsVariable, processors.text());
    return {};
}

}  // namespace starling::launch
