// The process table for debuggers that attach to mpiexec or start it: the MPIR process acquisition interface, 1.0 (MPIR_proctable and so
// on). It has the ranks of mpiexec's own host.
#pragma once

#include "launch/process/launcher.h"

namespace starling::launch {

/// Enters the local ranks of a job into the table. Call it once, when the job's processes have been started.
void fill_debugger_table(const LocalJob& job);

/// Returns whether a debugger has started this mpiexec and wants to control the job from its start.
bool is_being_debugged();

/// Calls MPIR_Breakpoint, where the debugger reads the table and attaches to the ranks, which must be stopped.
void report_spawned();

}  // namespace starling::launch
