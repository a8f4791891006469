// Checks the job's STARLING_ settings in mpiexec, so that an error is reported once, not by every process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// Puts the variables of --set into this process's environment, before it reads its configuration: mpiexec obeys them as if the user had
/// exported them, and the tools that it starts do so, too.
void apply_settings(const std::vector<std::pair<std::string, std::string>>& settings);

/// Reads this process's own configuration and checks the variables that -x and --set pass to the programs. Reports bad settings on standard
/// error, one line each, and sets a variable so that the processes do not report them again.
void check_settings(std::vector<Program>& programs);

}  // namespace starling::launch
