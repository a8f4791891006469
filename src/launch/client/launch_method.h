// Selects how a job is started: by mpiexec alone, through an agent, or by daemons that run already.
#pragma once

#include <string>
#include <vector>

#include "launch/client/options.h"

namespace starling::launch {

struct Choice {
    LaunchMethod way = LaunchMethod::direct;
    std::string why;      ///< reason for the selected method, printed with --verbose
    std::string problem;  ///< reason why the job can't be started in the requested way; empty: it can
};

/// Returns all hosts that the programs name.
std::vector<HostSlots> hosts_of(const std::vector<Program>& programs);

/// Removes this machine from the hosts of all programs (--nolocal). Returns an empty string, or a sentence that describes the error.
std::string leave_out_this_machine(std::vector<Program>& programs);

/// Selects the fastest way that can serve the job. If all hosts are this machine, mpiexec itself starts it. Standing daemons come next,
/// since nothing has to be started first; the agent is last.
///
/// A job that names no host is submitted to standing daemons if they run, because its children may spread over their hosts. Otherwise it
/// runs here. `standing`: whether standing daemons may be tried; `refusal`: why they rejected the job.
Choice choose_way(const Options& options, bool standing, const std::string& refusal);

}  // namespace starling::launch
