#include "launch/client/allocation.h"

#include <charconv>
#include <string_view>

#include "base/config.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr size_t kMost = 100000;
constexpr size_t kLongestName = 255;  ///< maximum length of a host name

bool consume(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

// Removes a number from the front of `text`. `digits` is set to its length, because "07" names another host than "7".
bool parse_padded(std::string_view& text, uint32_t& value, size_t& digits) {
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
        if (!parse_padded(text, first, digits)) return false;
        last = first;
        if (consume(text, '-') && !parse_padded(text, last, unused)) return false;
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
        if (!parse_ranges(text, parts) || names.size() * parts.size() > kMost || names[0].size() > kLongestName) return false;
        for (const std::string& name : names)
            for (const std::string& part : parts) longer.push_back(name + part);
        names = std::move(longer);
    }
    out.insert(out.end(), names.begin(), names.end());
    return !names[0].empty() && out.size() <= kMost;
}

const char* either(const char* name, const char* older_name) {
    const char* value = manager_variable(name);
    return value ? value : manager_variable(older_name);
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
        if (!parse_padded(list, count, unused)) return false;
        if (consume(list, '(')) {
            if (!consume(list, 'x') || !parse_padded(list, times, unused) || !consume(list, ')')) return false;
        }
        if (times > kMost || out.size() + times > kMost) return false;
        out.insert(out.end(), times, count);
    } while (consume(list, ','));
    return list.empty();
}

Allocation slurm_allocation() {
    Allocation job;
    const char* id = either("SLURM_JOB_ID", "SLURM_JOBID");
    if (!id) return job;
    job.manager = "Slurm";
    const char* list = either("SLURM_JOB_NODELIST", "SLURM_NODELIST");
    std::vector<std::string> names;
    if (!list || !expand_hosts(list, names)) {
        job.problem = "this is a Slurm job, and SLURM_JOB_NODELIST=" + printable(list ? list : "") +
                      " is not understood; name the hosts with --host, or use this one only with --via direct";
        return job;
    }
    // A host's slots are the tasks that the user requested there. If the user requested none, it has a slot per core. The counts of a step
    // on a part of the hosts do not have the length of the list, and are not used.
    std::vector<uint32_t> slots;
    for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
        const char* counts = manager_variable(name);
        if (!counts || (name == std::string_view("SLURM_TASKS_PER_NODE") && !either("SLURM_NTASKS", "SLURM_NPROCS"))) continue;
        if (!expand_counts(counts, slots)) {
            job.problem = std::string("this is a Slurm job, and ") + name + "=" + printable(counts) +
                          " is not understood; name the hosts with --host";
            return job;
        }
        if (slots.size() == names.size()) break;
    }
    if (slots.size() != names.size()) slots.assign(names.size(), 0);
    for (size_t i = 0; i < names.size(); ++i) job.hosts.push_back({names[i], slots[i]});
    job.agent =
        "srun --jobid=" + std::string(id) + " --overlap --nodes=1 --ntasks=1 --mpi=none --cpu-bind=none --quiet --nodelist";
    return job;
}

Allocation find_allocation() {
    // Flux is first: its jobs inherit the variables of the manager's job in which the Flux instance runs.
    for (Allocation (*const find)() :
         {flux_allocation, slurm_allocation, lsf_allocation, pbs_allocation, grid_engine_allocation, cobalt_allocation}) {
        if (Allocation job = find(); !job.manager.empty()) return job;
    }
    return {};
}

std::string use_allocation(Options& options) {
    for (const Program& program : options.programs)
        if (!program.hosts.empty()) return {};
    const Allocation job = find_allocation();
    if (job.hosts.empty()) return job.problem;
    for (Program& program : options.programs) program.hosts = job.hosts;
    options.allocation = "using the " + number_of(job.hosts.size(), "host") + " of this " + job.manager + " job";
    if (job.hosts.size() == 1 && is_this_machine(job.hosts[0].name)) return {};
    if (job.agent.empty() || !options.agent.empty() || config().launcher_agent) return {};
    options.agent = job.agent;
    // When such an agent ends, the manager kills the processes that it has started, so the agent must keep running.
    set_variable("STARLING_KEEP_AGENT", "on");
    return {};
}

}  // namespace starling::launch
