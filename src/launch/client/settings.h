// The launcher looks at the job's STARLING_ settings, so that a slip is told once, not by every process.
#pragma once

#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// Reads this process's own configuration and checks what -x and --set give the programs. Bad settings are
/// told on standard error, one line each; the processes are told that this has been done.
void check_settings(std::vector<Program>& programs);

}  // namespace starling::launch
