// Reads the stacks of a running process by elfutils' libdw, in a few hundredths of a second. The library is loaded on the first use, since
// most runs of mpiexec need no stacks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace starling::launch {

struct StackFrame {
    std::string function;  ///< demangled; "program+0x1234" without a symbol
    std::string module;    ///< file name of the program or library, without directories
    std::string source{};  ///< "heat2d.c:118"; empty without line information
    uint64_t address = 0;  ///< the instruction
};

struct ThreadStack {
    pid_t thread = 0;
    std::vector<StackFrame> frames;  ///< the innermost first
};

struct ProcessStacks {
    std::vector<ThreadStack> threads;
    std::string problem;  ///< the reason if `threads` is empty
};

/// Returns whether libdw can be loaded.
bool can_walk_stacks();

/// Returns the stacks of all threads. Stops each thread for the time of its walk, and needs the right to trace the process. Never
/// downloads debug information. Call it in a child process with a time limit: a thread in an uninterruptible state blocks it.
ProcessStacks walk_stacks(pid_t pid);

/// Removes what a user of MPI need not see: the library's frames below an MPI or OpenSHMEM call, the start
/// code around main(), and threads of the library.
void hide_library_frames(ProcessStacks& stacks);

/// Keeps one thread, without the frames inside of the instruction at `address`, such as those of a signal handler.
void keep_from(ProcessStacks& stacks, pid_t thread, uint64_t address);

/// Returns one line per frame, with a heading per thread if there are several. Folds the frames of a Python interpreter unless
/// `all_frames` is set.
std::string stacks_text(const ProcessStacks& stacks, bool all_frames);

}  // namespace starling::launch
