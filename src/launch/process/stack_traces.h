// Prints the stacks of hanging processes, for --timeout.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace starling::launch {

/// Prints the stacks of each (name, process) to standard error: by gdb, and by py-spy for Python, if installed. Without gdb or after a
/// timeout it prints the state, the kernel function and the threads from /proc. Blocks for up to half a minute.
void print_stacks(const std::vector<std::pair<std::string, pid_t>>& processes);

}  // namespace starling::launch
