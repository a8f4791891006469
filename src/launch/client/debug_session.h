// mpiexec --debug: chosen ranks stop before their program starts, and gdb runs on them in mpiexec's terminal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launch/client/options.h"

namespace starling::launch {

/// Parses "0,3" into ranks. Returns false for any other text.
bool parse_debugged(const std::string& text, std::vector<uint32_t>& ranks);

/// Changes the commands so that the ranks of --debug stop before their program starts. mpiexec itself must start the job. Returns an empty
/// string, or a sentence about a program that cannot start.
std::string hold_debugged(Options& options);

/// Starts gdb on one process, or tmux with a pane of gdb for each of several, in this process's terminal and process group. The processes
/// must be those that hold_debugged() has stopped, or will. Returns the child's pid, or -1 with the reason in `problem`.
pid_t start_debuggers(const std::vector<pid_t>& processes, std::string& problem);

}  // namespace starling::launch
