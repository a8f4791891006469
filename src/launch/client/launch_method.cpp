#include "launch/client/launch_method.h"

#include <algorithm>

#include "launch/common/text.h"

namespace starling::launch {

std::vector<HostSlots> hosts_of(const std::vector<Program>& programs) {
    std::vector<HostSlots> all;
    HostNames names;
    for (const Program& program : programs) {
        for (const HostSlots& host : program.hosts) {
            const uint32_t known = names.find(host.name);
            if (known == HostNames::kNone) {
                names.add(host.name, static_cast<uint32_t>(all.size()));
                all.push_back(host);
            } else {
                all[known].slots = std::max(all[known].slots, host.slots);
            }
        }
    }
    return all;
}

std::string leave_out_this_machine(std::vector<Program>& programs) {
    for (Program& program : programs) {
        if (!program.host_of_process.empty()) return "--nolocal contradicts the rank file, which names the host of each rank";
        std::erase_if(program.hosts, [](const HostSlots& host) { return is_this_machine(host.name); });
        if (program.hosts.empty())
            return "no host is left for '" + program.argv[0] + "' without this machine (" + host_name() +
                   "); leave out --nolocal, or name other hosts with --host or --hostfile";
    }
    return {};
}

Choice choose_way(const Options& options, bool standing, const std::string& refusal) {
    const std::vector<HostSlots> hosts = hosts_of(options.programs);
    const auto elsewhere =
        std::find_if(hosts.begin(), hosts.end(), [](const HostSlots& host) { return !is_this_machine(host.name); });
    const bool all_here = elsewhere == hosts.end();
    Choice choice;
    if (options.way == LaunchMethod::direct && !all_here) {
        choice.problem = "'--via direct' starts processes on this machine (" + host_name() + ") only, and host '" +
                         elsewhere->name + "' is another machine; leave out one of the two";
    } else if (options.way == LaunchMethod::direct || (options.way == LaunchMethod::automatic && all_here && !hosts.empty())) {
        choice.why = "started by mpiexec itself: all processes are on this machine";
    } else if (standing && options.way != LaunchMethod::agent) {
        choice.way = LaunchMethod::standing;
    } else if (options.way == LaunchMethod::standing) {
        choice.problem = refusal;
    } else if (options.way == LaunchMethod::agent || !all_here) {
        choice.way = LaunchMethod::agent;
        choice.why = "starting daemons on " + number_of(hosts.size(), "host") + " through the agent" +
                     (refusal.empty() ? "" : ": " + refusal);
    } else {
        choice.why = "started by mpiexec itself, on this machine" + (refusal.empty() ? "" : ": " + refusal);
    }
    return choice;
}

}  // namespace starling::launch
