#include "launch/client/batch_hosts.h"

#include <cstdlib>
#include <unordered_map>

#include "launch/common/process_start.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr uint32_t kMostSlotsOfHost = 1000000;

/// The hosts of a job in the order in which its manager names them; the slots of a host that is named again add up.
class SlotCounter {
  public:
    explicit SlotCounter(std::vector<HostSlots>& hosts) : hosts_(hosts) {}

    // Returns an empty string, or a sentence that describes the error.
    std::string add(std::string_view name, uint32_t slots) {
        if (!may_be_host(name)) return printable(name) + " is not the name of a host";
        const auto [at, fresh] = known_.try_emplace(std::string(name), hosts_.size());
        if (fresh) hosts_.push_back({std::string(name), 0});
        uint32_t& sum = hosts_[at->second].slots;
        if (slots > kMostSlotsOfHost - sum) return "host " + std::string(name) + " has more than a million slots";
        sum += slots;
        return {};
    }

    std::string add(std::string_view name, std::string_view slots) {
        uint32_t number = 0;
        if (!read_number(slots, number) || number == 0) return printable(slots) + " is not a number of slots";
        return add(name, number);
    }

  private:
    std::vector<HostSlots>& hosts_;
    std::unordered_map<std::string, size_t> known_;
};

bool is_in_path(std::string_view command) {
    const char* path = manager_variable("PATH");
    return path && !find_program(command, path, "/").empty();
}

// Reads a file with a host per line and slot. With `counted`, the second word of a line is the number of slots.
std::string read_host_lines(const char* path, bool counted, std::vector<HostSlots>& out) {
    SlotCounter counter(out);
    return read_lines("file of hosts", path, [&](std::string_view line) {
        const std::string_view name = parse_word(line), second = parse_word(line);
        if (name.empty()) return std::string();
        return counted ? counter.add(name, second) : counter.add(name, 1);
    });
}

// Reads "a 2 b 4", or "a a b b b b".
std::string read_words(std::string_view text, bool counted, std::vector<HostSlots>& out) {
    SlotCounter counter(out);
    std::string problem;
    for (std::string_view name = parse_word(text); !name.empty() && problem.empty(); name = parse_word(text))
        problem = counted ? counter.add(name, parse_word(text)) : counter.add(name, 1);
    return problem;
}

// Completes the sentence about a list that can't be understood.
void check_list(Allocation& job, const char* variable, const std::string& reason) {
    if (reason.empty() && !job.hosts.empty()) return;
    job.hosts.clear();
    job.problem = "this is a job of " + job.manager + ", and " + variable + "=" + printable(manager_variable(variable)) +
                  " is not understood: " + (reason.empty() ? "it names no host" : reason) +
                  "; name the hosts with --host, or use this one only with --via direct";
}

Allocation of_file(const char* manager, const char* variable, bool counted) {
    Allocation job;
    const char* path = manager_variable(variable);
    if (!path) return job;
    job.manager = manager;
    check_list(job, variable, read_host_lines(path, counted, job.hosts));
    return job;
}

Allocation without_list(const char* manager, const char* job_variable, const char* lists) {
    Allocation job;
    if (!manager_variable(job_variable)) return job;
    job.manager = manager;
    job.problem = std::string("this is a job of ") + manager + " (" + job_variable + " is set) without " + lists +
                  ", so its hosts are unknown; name the hosts with --host, or use this one only with --via direct";
    return job;
}

}  // namespace

const char* manager_variable(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

// As in IBM's documentation of LSF ("environment variables for parallel jobs"): LSB_MCPU_HOSTS is "a 2 b 4", with a host and its slots in
// turn; LSB_HOSTS and the file LSB_DJOB_HOSTFILE name a host once per slot. LSF leaves out LSB_HOSTS if its text would be too long.
Allocation lsf_allocation() {
    Allocation job;
    for (const char* variable : {"LSB_MCPU_HOSTS", "LSB_HOSTS"}) {
        const char* list = manager_variable(variable);
        if (!list) continue;
        job.manager = "LSF";
        check_list(job, variable, read_words(list, variable == std::string_view("LSB_MCPU_HOSTS"), job.hosts));
        break;
    }
    if (job.manager.empty()) job = of_file("LSF", "LSB_DJOB_HOSTFILE", false);
    if (job.manager.empty()) return without_list("LSF", "LSB_JOBID", "LSB_MCPU_HOSTS, LSB_HOSTS or LSB_DJOB_HOSTFILE");
    if (is_in_path("blaunch")) job.agent = "blaunch";
    return job;
}

// As in Altair's PBS Professional User's Guide ("the job's node file"): PBS_NODEFILE has a line per MPI process (mpiprocs of each chunk,
// 1 by default), in the order of the chunks, on the first host only. Torque's file has a line per processor (ppn).
Allocation pbs_allocation() {
    Allocation job = of_file("PBS", "PBS_NODEFILE", false);
    return job.manager.empty() ? without_list("PBS", "PBS_JOBID", "PBS_NODEFILE") : job;
}

// As in sge_pe(5): a line of PE_HOSTFILE has the host, its slots, the queue and its processors.
Allocation grid_engine_allocation() {
    Allocation job = of_file("Grid Engine", "PE_HOSTFILE", true);
    if (!job.manager.empty() && is_in_path("qrsh")) job.agent = "qrsh -inherit -V";
    return job;
}

// As in the documentation of Argonne's machines: COBALT_NODEFILE has a line per node.
Allocation cobalt_allocation() {
    Allocation job = of_file("Cobalt", "COBALT_NODEFILE", false);
    return job.manager.empty() ? without_list("Cobalt", "COBALT_JOBID", "COBALT_NODEFILE") : job;
}

}  // namespace starling::launch
