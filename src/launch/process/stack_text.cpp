#include <algorithm>
#include <array>
#include <string_view>

#include "launch/process/stack_walk.h"

namespace starling::launch {

namespace {

constexpr size_t kMostShown = 30;

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view begin) { return text.starts_with(begin); });
}

/// Returns whether a frame belongs to MPI, OpenSHMEM or the system libraries below them.
bool is_library(const StackFrame& frame) {
    return starts_with_any(frame.module, {"libmpi", "liboshmem", "libsma", "libstarling", "libibverbs", "librdmacm", "libmlx",
                                          "libc.so", "libpthread", "ld-linux", "linux-vdso", "[vdso", "ld-musl"});
}

/// Returns "MPI_Send" for the library's own function behind MPI_Send, whose entry may have left no frame; otherwise the same name.
std::string call_name(const std::string& function) {
    constexpr std::string_view kOwn = "starling::mpi::";
    const std::string name = function.substr(0, function.find('('));
    if (!name.starts_with(kOwn) || name.find(':', kOwn.size()) != std::string::npos) return function;
    return "MPI_" + name.substr(kOwn.size());
}

bool is_call(const StackFrame& frame) {
    return !starts_with_any(frame.module, {"libc", "libpthread", "ld-", "linux-vdso", "[vdso"}) &&
           starts_with_any(call_name(frame.function), {"MPI_", "PMPI_", "MPIX_", "PMPIX_", "shmem", "pshmem", "mpi_", "pmpi_"});
}

bool is_python(const StackFrame& frame) { return starts_with_any(frame.module, {"python", "libpython"}); }

/// Removes the frames below the outermost call into MPI. Frames outside libraries end the search: they belong to a callback of the user.
void hide_below_call(ThreadStack& stack) {
    auto call = stack.frames.end();
    for (auto frame = stack.frames.begin(); frame != stack.frames.end() && is_library(*frame); ++frame)
        if (is_call(*frame)) call = frame;
    if (call == stack.frames.end()) return;
    call->function = call_name(call->function);
    stack.frames.erase(stack.frames.begin(), call);
}

/// Removes the start code around main().
void hide_start(ThreadStack& stack) {
    const auto main = std::find_if(stack.frames.begin(), stack.frames.end(), [](const StackFrame& frame) {
        return frame.function == "main" || frame.function == "MAIN__";
    });
    if (main != stack.frames.end()) stack.frames.erase(main + 1, stack.frames.end());
}

bool is_library_thread(const ThreadStack& stack) { return std::all_of(stack.frames.begin(), stack.frames.end(), is_library); }

std::string line_of(const StackFrame& frame) {
    const std::string& where = frame.source.empty() || is_library(frame) ? frame.module : frame.source;
    return where.empty() || frame.function.starts_with(where + "+") ? frame.function : frame.function + " (" + where + ")";
}

/// Returns the lines of one stack, in which frames of a Python interpreter are one line.
std::vector<std::string> lines_of(const ThreadStack& stack, bool all_frames) {
    std::vector<std::string> lines;
    for (auto frame = stack.frames.begin(); frame != stack.frames.end();) {
        const auto end = all_frames || !is_python(*frame) ? frame + 1 : std::find_if_not(frame, stack.frames.end(), is_python);
        lines.push_back(end - frame == 1
                            ? line_of(*frame)
                            : std::to_string(end - frame) + " frames of " + frame->module + " (--all-frames shows them)");
        frame = end;
    }
    if (!all_frames && lines.size() > kMostShown) {
        const size_t more = lines.size() - kMostShown;
        lines.resize(kMostShown);
        lines.push_back(std::to_string(more) + " more frames");
    }
    return lines;
}

}  // namespace

void hide_library_frames(ProcessStacks& stacks) {
    const bool any_other = !std::all_of(stacks.threads.begin(), stacks.threads.end(), is_library_thread);
    if (any_other) std::erase_if(stacks.threads, is_library_thread);
    for (ThreadStack& stack : stacks.threads) {
        hide_start(stack);
        hide_below_call(stack);
    }
}

void keep_from(ProcessStacks& stacks, pid_t thread, uint64_t address) {
    std::erase_if(stacks.threads, [&](const ThreadStack& stack) { return stack.thread != thread; });
    for (ThreadStack& stack : stacks.threads) {
        const auto from = std::find_if(stack.frames.begin(), stack.frames.end(),
                                       [&](const StackFrame& frame) { return frame.address == address; });
        if (from != stack.frames.end()) stack.frames.erase(stack.frames.begin(), from);
    }
}

std::string stacks_text(const ProcessStacks& stacks, bool all_frames) {
    if (stacks.threads.empty()) return "  no stack: " + stacks.problem + "\n";
    std::string text;
    for (size_t i = 0; i < stacks.threads.size(); ++i) {
        if (stacks.threads.size() > 1) text += "  thread " + std::to_string(i + 1) + "\n";
        for (const std::string& line : lines_of(stacks.threads[i], all_frames))
            text += (stacks.threads.size() > 1 ? "    " : "  ") + line + "\n";
    }
    return text;
}

}  // namespace starling::launch
