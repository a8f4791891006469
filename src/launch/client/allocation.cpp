#include "launch/client/allocation.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/config.h"

namespace starling::launch {

namespace {

constexpr size_t kMost = 100000;
constexpr size_t kLongest = 255;  ///< maximum length of a host name

bool consume(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

// Removes a number from the front of `text`. `digits` is set to its length, because "07" names another host than "7".
bool parse_number(std::string_view& text, uint32_t& value, size_t& digits) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || digits > 9) return false;
    text.remove_prefix(digits);
    return true;
}

std::string padded(uint32_t value, size_t digits) {
    std::string text = std::to_string(value);
    if (text.size() < digits) text.insert(0, digits - text.size(), '0');
    return text;
}

// Reads ranges such as "1-3,07]", including the bracket.
bool parse_ranges(std::string_view& text, std::vector<std::string>& out) {
    do {
        uint32_t first, last;
        size_t digits, unused;
        if (!parse_number(text, first, digits)) return false;
        last = first;
        if (consume(text, '-') && !parse_number(text, last, unused)) return false;
        if (last < first || last - first >= kMost || out.size() + (last - first) >= kMost) return false;
        for (uint32_t value = first; value <= last; ++value) out.push_back(padded(value, digits));
    } while (consume(text, ','));
    return consume(text, ']');
}

// Reads one name with ranges, up to a comma outside brackets.
bool parse_names(std::string_view& text, std::vector<std::string>& out) {
    std::vector<std::string> names = {""};
    while (!text.empty() && text.front() != ',') {
        if (!consume(text, '[')) {
            for (std::string& name : names) name.push_back(text.front());
            text.remove_prefix(1);
            continue;
        }
        std::vector<std::string> parts, longer;
        if (!parse_ranges(text, parts) || names.size() * parts.size() > kMost || names[0].size() > kLongest) return false;
        for (const std::string& name : names)
            for (const std::string& part : parts) longer.push_back(name + part);
        names = std::move(longer);
    }
    out.insert(out.end(), names.begin(), names.end());
    return !names[0].empty() && out.size() <= kMost;
}

const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

}  // namespace

bool expand_hosts(std::string_view list, std::vector<std::string>& out) {
    out.clear();
    do {
        if (!parse_names(list, out)) return false;
    } while (consume(list, ','));
    return list.empty();
}

bool expand_counts(std::string_view list, std::vector<uint32_t>& out) {
    out.clear();
    do {
        uint32_t count, times = 1;
        size_t unused;
        if (!parse_number(list, count, unused)) return false;
        if (consume(list, '(')) {
            if (!consume(list, 'x') || !parse_number(list, times, unused) || !consume(list, ')')) return false;
        }
        if (times > kMost || out.size() + times > kMost) return false;
        out.insert(out.end(), times, count);
    } while (consume(list, ','));
    return list.empty();
}

std::vector<HostSlots> slurm_hosts(std::string& problem) {
    const char* list = variable("SLURM_JOB_NODELIST");
    if (!variable("SLURM_JOB_ID") || !list) return {};
    std::vector<std::string> names;
    if (!expand_hosts(list, names)) {
        problem = "this is a Slurm job, but SLURM_JOB_NODELIST='" + std::string(list) +
                  "' can't be understood; name the hosts with --host";
        return {};
    }
    // A host's slots are the tasks that the user requested there. If the user requested none, it has a slot per core.
    const char* counts = variable("SLURM_NTASKS") ? variable("SLURM_TASKS_PER_NODE") : nullptr;
    if (!counts) counts = variable("SLURM_JOB_CPUS_PER_NODE");
    std::vector<uint32_t> slots;
    if (!counts || !expand_counts(counts, slots) || slots.size() != names.size()) slots.assign(names.size(), 0);
    std::vector<HostSlots> hosts;
    for (size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], slots[i]});
    return hosts;
}

std::string use_allocation(Options& options) {
    for (const Program& program : options.programs)
        if (!program.hosts.empty()) return {};
    std::string problem;
    const std::vector<HostSlots> hosts = slurm_hosts(problem);
    if (hosts.empty() || (hosts.size() == 1 && is_this_machine(hosts[0].name))) return problem;
    for (Program& program : options.programs) program.hosts = hosts;
    if (!options.agent.empty() || config().launcher_agent) return {};
    options.agent = "srun --jobid=" + std::string(variable("SLURM_JOB_ID")) +
                    " --overlap --nodes=1 --ntasks=1 --mpi=none --cpu-bind=none --quiet --nodelist";
    // When srun ends, Slurm kills the processes of its step, so srun must keep running.
    set_variable("STARLING_KEEP_AGENT", "on");
    return {};
}

}  // namespace starling::launch
