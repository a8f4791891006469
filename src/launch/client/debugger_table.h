// The process table for debuggers that attach to mpiexec or start it: the MPIR process acquisition interface, 1.0 (MPIR_proctable and so
// on).
#pragma once

#include <cstddef>

#include "launch/common/process_table.h"

namespace starling::launch {

/// Limit of hosts up to which the table of a job is filled as soon as the job has started, so that a debugger that attaches can read it at
/// once. With more hosts the lists take longer than a debugger's rare visit is worth, and are gathered when it requests them.
inline constexpr size_t kListedHosts = 64;

/// Appends a job's processes to the table.
void add_to_debugger_table(ProcessTable processes);
bool has_debugger_table();

/// Returns whether a debugger has started this mpiexec, or has attached to it, and wants to be notified of new processes.
bool is_being_debugged();
/// Returns true once for each debugger: in the first call after it has set MPIR_being_debugged.
bool has_debugger_attached();

/// Calls MPIR_Breakpoint, where the debugger reads the table and attaches to the ranks. New ones must be stopped.
void report_spawned();

}  // namespace starling::launch
