#include "starling/crash_stack.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "base/signal_name.h"
#include "launch/common/hosts.h"
#include "launch/process/stack_walk.h"

namespace starling {

int print_crash(const CrashOptions& options) {
    launch::ProcessStacks stacks = launch::walk_stacks(options.pid);
    launch::keep_from(stacks, options.thread, options.from);
    launch::hide_library_frames(stacks);
    const char* name = signal_name(options.signal);
    const std::string text = fmt::format("starling: rank {}, process {} on {}, has received SIG{} in\n{}", options.rank,
                                         options.pid, launch::host_name(), name ? name : std::to_string(options.signal).c_str(),
                                         launch::stacks_text(stacks, false));
    // One write, so that texts of several ranks do not mix.
    return write(STDERR_FILENO, text.data(), text.size()) < 0;
}

}  // namespace starling
