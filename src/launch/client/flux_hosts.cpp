// The hosts of a Flux instance or job. Flux puts them into no variable, so its command is asked. The formats are those of Flux's RFCs 20
// (resource sets), 22 (sets of numbers) and 29 (lists of hosts). flux-environment(7) lists the variables: FLUX_URI is set in batch scripts
// and in jobs' tasks, FLUX_JOB_ID in tasks only.
#include <sys/wait.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "launch/client/allocation.h"
#include "launch/client/batch_hosts.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr size_t kMostBytesOfResources = 16 << 20;

// Expands "0-3,7", with or without brackets, to its numbers.
bool read_ids(std::string text, std::vector<uint32_t>& out) {
    if (!text.starts_with('[')) text = "[" + text + "]";
    std::vector<std::string> words;
    if (!expand_hosts(text, words)) return false;
    for (const std::string& word : words)
        if (!read_number(word, out.emplace_back())) return false;
    return true;
}

// Adds up the slots of a host with several brokers, as in an instance of `flux start --test-size`.
void merge_equal_hosts(std::vector<HostSlots>& hosts) {
    std::vector<HostSlots> merged;
    std::unordered_map<std::string, size_t> known;
    for (HostSlots& host : hosts) {
        const auto [at, fresh] = known.try_emplace(host.name, merged.size());
        if (fresh)
            merged.push_back(std::move(host));
        else
            merged[at->second].slots += host.slots;
    }
    hosts = std::move(merged);
}

std::string read_resources(const nlohmann::json& resources, std::vector<HostSlots>& out) {
    const nlohmann::json& execution = resources.at("execution");
    for (const nlohmann::json& list : execution.at("nodelist")) {
        std::vector<std::string> names;
        if (!expand_hosts(list.get<std::string>(), names)) return "its list of hosts is malformed";
        for (std::string& name : names) {
            if (!may_be_host(name)) return printable(name) + " is not the name of a host";
            out.push_back({std::move(name), 0});
        }
    }
    std::map<uint32_t, uint32_t> cores;  // by rank of the broker; the hosts are in the order of the ranks
    for (const nlohmann::json& part : execution.at("R_lite")) {
        std::vector<uint32_t> ranks, ids;
        if (!read_ids(part.at("rank").get<std::string>(), ranks) ||
            !read_ids(part.at("children").at("core").get<std::string>(), ids))
            return "its list of cores is malformed";
        for (const uint32_t rank : ranks) cores[rank] += static_cast<uint32_t>(ids.size());
    }
    if (cores.size() != out.size() || out.empty())
        return "it has " + std::to_string(out.size()) + " hosts and cores of " + std::to_string(cores.size());
    size_t host = 0;
    for (const auto& [rank, number] : cores) out[host++].slots = number;
    merge_equal_hosts(out);
    return {};
}

// Returns what the command writes. Flux's own error text goes to standard error. The time limit serves an instance that hangs.
bool output_of(const char* command, std::string& out) {
    FILE* pipe = popen(command, "re");
    if (!pipe) return false;
    char chunk[1 << 14];
    for (size_t bytes; (bytes = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;)
        if (out.size() < kMostBytesOfResources) out.append(chunk, bytes);
    const int status = pclose(pipe);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string parse_flux_resources(std::string_view text, std::vector<HostSlots>& out) {
    out.clear();
    try {
        return read_resources(nlohmann::json::parse(text), out);
    } catch (const nlohmann::json::exception& error) {
        return "it is not a description of resources, " + printable(error.what());
    }
}

Allocation flux_allocation() {
    Allocation job;
    if (!manager_variable("FLUX_URI")) return job;
    job.manager = "Flux";
    const bool within = manager_variable("FLUX_JOB_ID") != nullptr;
    const char* command = within ? "timeout 30 flux job info \"$FLUX_JOB_ID\" R" : "timeout 30 flux resource R";
    std::string text;
    std::string reason = "the command fails";
    if (output_of(command, text)) reason = parse_flux_resources(text, job.hosts);
    if (reason.empty()) return job;
    job.hosts.clear();
    job.problem = std::string("this is a job of Flux (FLUX_URI), and the hosts that `") +
                  (within ? "flux job info $FLUX_JOB_ID R" : "flux resource R") + "` names are not understood: " + reason +
                  "; name the hosts with --host, or use this one only with --via direct";
    return job;
}

}  // namespace starling::launch
