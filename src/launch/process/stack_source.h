// The ways to get the stacks of one process as text: libdw, gdb and py-spy, each in a child process with a time limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace starling::launch {

using StackClock = std::chrono::steady_clock;

/// Values of a process that /proc shows; "?" if they are not available.
struct ProcessFacts {
    std::string state, waits_in, threads;
    unsigned long memory_kb = 0;
};

ProcessFacts process_facts(pid_t pid);

/// Returns whether the process runs a Python interpreter.
bool runs_python(pid_t pid);

/// Each returns the stacks as text in whole lines, or a line with the reason why there are none. Each returns soon after `give_up`.
std::string read_stacks(pid_t pid, bool all_frames, StackClock::time_point give_up);
std::string stacks_by_gdb(const std::string& gdb, pid_t pid, StackClock::time_point give_up);
std::string stacks_by_py_spy(const std::string& py_spy, pid_t pid, StackClock::time_point give_up);

}  // namespace starling::launch
