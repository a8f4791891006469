// Collects the stacks of hanging processes, for --timeout and `starling why --stacks`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "hang/report.h"

namespace starling::launch {

/// A process whose stacks are wanted.
struct StackSubject {
    hang::ProcessName process;
    pid_t pid = 0;
    std::string suffix;  ///< text behind the rank's name, such as " (heat2d)"
};

struct StackOptions {
    bool all_frames = false;            ///< true: do not hide the library's frames and threads
    std::chrono::seconds share{15};     ///< time for all processes together; those not reached in it get no stack
    std::function<void(size_t)> taken;  ///< called with the number of processes whose stacks have been taken, at most every 2 s
};

/// Returns the stacks of the processes as text, in which equal stacks are merged. They are taken by libdw, or by gdb where libdw cannot be
/// loaded, and by py-spy for Python if it is installed. Ranks of the job `home` are named by number alone. Blocks for `share` at most, and
/// a moment.
std::string take_stacks(const std::vector<StackSubject>& subjects, uint64_t home, const StackOptions& options);

}  // namespace starling::launch
