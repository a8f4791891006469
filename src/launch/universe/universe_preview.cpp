// The placement of a job that is not started (mpiexec --dry-run).
#include <unordered_map>

#include "launch/universe/universe_job.h"

namespace starling::launch {

PlacementPreview Universe::preview(JobSpec spec) {
    PlacementPreview preview;
    std::vector<uint32_t> host_of_rank;
    if (!prepare(spec, false, host_of_rank, preview.problem)) return preview;
    for (const Program& program : spec.programs) preview.counts.push_back(program.count);
    std::unordered_map<uint32_t, uint32_t> known;
    for (const uint32_t host : host_of_rank) {
        const auto [at, fresh] = known.try_emplace(host, static_cast<uint32_t>(preview.hosts.size()));
        if (fresh) preview.hosts.push_back(hosts_[host].name);
        preview.host_of_rank.push_back(at->second);
    }
    return preview;
}

PlacementPreview Universe::preview(JobSpec spec, const std::vector<HostSlots>& hosts) {
    std::vector<std::string> assumed;
    hosts_[kRootHost].offered = hosts.empty();
    for (const HostSlots& host : hosts) {
        const uint32_t known = find_host(host.name);
        if (known != job::kNoHost) {
            hosts_[known].offered = true;
            if (host.slots > 0) hosts_[known].slots = host.slots;
            continue;
        }
        UniverseHost entry;
        entry.name = host.name;
        entry.slots = host.slots;
        entry.state = UniverseHost::HostState::up;
        entry.facts.cores = hosts_[kRootHost].facts.cores;
        if (host.slots == 0) assumed.push_back(host.name);
        host_names_.add(entry.name, static_cast<uint32_t>(hosts_.size()));
        hosts_.push_back(std::move(entry));
    }
    PlacementPreview result = preview(std::move(spec));
    if (result.problem.empty()) result.assumed = std::move(assumed);
    return result;
}

}  // namespace starling::launch
