// The process table for debuggers that attach to mpiexec or start it: the MPIR process acquisition interface, 1.0 (MPIR_proctable and so
// on).
#pragma once

#include "launch/common/process_table.h"

namespace starling::launch {

/// Enters a job's processes into the table. Call it once, when the processes have been started.
void fill_debugger_table(ProcessTable processes);

/// Returns whether a debugger has started this mpiexec and wants to control the job from its start.
bool is_being_debugged();

/// Calls MPIR_Breakpoint, where the debugger reads the table and attaches to the ranks, which must be stopped.
void report_spawned();

}  // namespace starling::launch
