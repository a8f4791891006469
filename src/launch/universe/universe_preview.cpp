// The placement of a job that is not started (mpiexec --dry-run).
#include "launch/universe/universe_job.h"

namespace starling::launch {

PlacementPreview Universe::preview(JobSpec spec, const std::vector<HostSlots>& hosts) {
    PlacementPreview preview;
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
        if (host.slots == 0) preview.assumed.push_back(host.name);
        host_names_.add(entry.name, static_cast<uint32_t>(hosts_.size()));
        hosts_.push_back(std::move(entry));
    }
    std::vector<uint32_t> host_of_rank;
    if (!set_counts(spec, preview.problem) || !place_job(spec, false, host_of_rank, preview.problem)) return preview;
    for (const uint32_t host : host_of_rank) preview.host_of_rank.push_back(hosts_[host].name);
    preview.programs = std::move(spec.programs);
    return preview;
}

}  // namespace starling::launch
