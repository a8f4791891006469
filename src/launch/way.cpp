#include "launch/way.h"

#include <algorithm>

#include "launch/hosts_run.h"

namespace starling::launch {

Choice choose_way(const Options& options) {
    const std::vector<HostSlots> hosts = hosts_of(options.programs);
    const auto elsewhere =
        std::find_if(hosts.begin(), hosts.end(), [](const HostSlots& host) { return !is_this_machine(host.name); });
    Choice choice;
    if (options.way == Way::direct && elsewhere != hosts.end()) {
        choice.problem = "'--via direct' starts processes on this machine (" + host_name() + ") only, and host '" +
                         elsewhere->name + "' is another; leave one of the two out";
    } else if (options.way == Way::agent || (options.way == Way::automatic && elsewhere != hosts.end())) {
        choice.way = Way::agent;
        choice.why = "starting daemons on " + std::to_string(hosts.size()) +
                     " hosts through the agent: no standing daemons have been found";
    } else {
        choice.why = "started by mpiexec itself: all processes are on this machine";
    }
    return choice;
}

}  // namespace starling::launch
