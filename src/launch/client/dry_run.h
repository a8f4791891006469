// mpiexec --dry-run: prints what would be started, and starts nothing.
#pragma once

#include "launch/universe/universe.h"

namespace starling::launch {

/// Prints the ranks of each host, and the command of the ranks. Returns mpiexec's exit code: 127 if the job can't be placed.
int print_preview(const PlacementPreview& preview);

}  // namespace starling::launch
