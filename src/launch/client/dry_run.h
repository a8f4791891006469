// mpiexec --dry-run: prints what would be started, and starts nothing.
#pragma once

#include <vector>

#include "launch/common/job_spec.h"
#include "launch/common/placement_preview.h"

namespace starling::launch {

/// Prints the ranks of each host, and the command of the ranks. Returns mpiexec's exit code: 127 if the job can't be placed. `programs`: the
/// job's programs, as many as the preview has counts.
int print_preview(const PlacementPreview& preview, const std::vector<Program>& programs);

}  // namespace starling::launch
