// Where processes hang: for --timeout.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace starling::launch {

/// Prints, to standard error, the stacks of each (name, process) by gdb, and Python's by py-spy where it is installed; without gdb, or when its time is
/// up, what /proc tells: state, what the kernel waits for, threads. Blocks for up to half a minute.
void print_stacks(const std::vector<std::pair<std::string, pid_t>>& processes);

}  // namespace starling::launch
