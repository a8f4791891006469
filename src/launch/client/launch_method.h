// How a job's daemons come about: by mpiexec alone, through an agent, or because they are there already.
#pragma once

#include <string>
#include <vector>

#include "launch/client/options.h"

namespace starling::launch {

struct Choice {
    Way way = Way::direct;
    std::string why;      ///< for --verbose
    std::string problem;  ///< not empty: the job can't be started the way that was asked for
};

/// All hosts that the programs name.
std::vector<HostSlots> hosts_of(const std::vector<Program>& programs);

/// The fastest way that can serve the job, in order: mpiexec itself if all hosts named are this machine; standing daemons,
/// since nothing has to be started first; the agent. A job that names no host goes to standing daemons if there are any,
/// for its children may spread over their hosts, and runs here otherwise. `standing`: whether such daemons may be tried;
/// `refusal`: why these did not take the job.
Choice choose_way(const Options& options, bool standing, const std::string& refusal);

}  // namespace starling::launch
