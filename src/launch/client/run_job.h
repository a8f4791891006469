// Runs mpiexec as the root of a universe, which lasts for one job and its spawned jobs.
#pragma once

#include <string>

#include "launch/client/launch_method.h"
#include "launch/client/options.h"
#include "launch/client/profile_file.h"

namespace starling::launch {

/// Runs the job: on this host, or, depending on `choice`, with daemons that it starts before and ends afterwards. Returns mpiexec's exit
/// code. `profile`: receives the job's profile, if it is open.
int run_job(const Options& options, char** argv, const Choice& choice, ProfileFile& profile);

}  // namespace starling::launch
