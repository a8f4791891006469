// mpiexec as the root of a universe, for the time of one job and what that spawns.
#pragma once

#include <string>

#include "launch/client/launch_method.h"
#include "launch/client/options.h"
#include "launch/client/profile_file.h"

namespace starling::launch {

/// Runs the job: on this host, or, if that is the choice, with daemons that it starts before and ends after. Returns
/// mpiexec's exit code. `profile`: of the job, if it is open.
int run_job(const Options& options, char** argv, const Choice& choice, ProfileFile& profile);

}  // namespace starling::launch
