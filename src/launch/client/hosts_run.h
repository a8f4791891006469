// mpiexec over several hosts: it is the universe's root for the time of one job and what that spawns.
#pragma once

#include <vector>

#include "launch/client/options.h"

namespace starling::launch {

/// All hosts that the programs name.
std::vector<HostSlots> hosts_of(const std::vector<Program>& programs);

/// Starts daemons, runs the job, ends the daemons. Returns mpiexec's exit code. `why`: how this way was chosen, for
/// --verbose.
int run_over_hosts(const Options& options, char** argv, const std::string& why);

}  // namespace starling::launch
